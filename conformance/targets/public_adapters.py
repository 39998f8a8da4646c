"""Published bridges to SB3's `VecEnv`, ported: see `specimens/public_adapters/`."""

from __future__ import annotations

import re

from conformance.specimens.public_adapters.judged import LIBRARY, verdicts
from conformance.targets.registry import TARGETS, Target

_SOURCE = """\
def make_env():
    from conformance.specimens.public_adapters.{module} import {names}
    return {make}"""

for _verdict in verdicts():
    _names = ", ".join(sorted(set(re.findall(r"(\w+)\(", _verdict.make))))
    _target = Target(
        name=f"{LIBRARY}-{_verdict.name}",
        about=_verdict.adapter.replace("`", ""),
        packages=(),
        source=_SOURCE.format(module=_verdict.name, names=_names, make=_verdict.make),
        capabilities={} if _verdict.separate_rows else {"separate_rows": False},
        known=_verdict.expected(),
    )
    TARGETS[_target.name] = _target
