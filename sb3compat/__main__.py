"""`python -m sb3compat` is the command line."""

from __future__ import annotations

import sys

from sb3compat.cli import main

sys.exit(main())
