"""Which versions are supported, and in which environments that is tried.

`python -m versions.pairs` prints the environments as JSON, for a matrix of jobs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sb3compat._versions import PAIRS

# SB3 brings torch along, which is large: it is tried with one Python, and the other Pythons
# without it.
PYTHON_WITH_SB3 = "3.11"
PYTHONS_WITHOUT_SB3 = ("3.10", "3.12", "3.13")


@dataclass(frozen=True)
class Environment:
    """A pair, and the Python that it is tried with."""

    sb3: str | None
    gymnasium: str
    python: str

    @property
    def name(self) -> str:
        """What it is called on the command line, and its folder."""
        sb3 = f"sb3-{self.sb3}" if self.sb3 else "no-sb3"
        return f"{sb3}-gymnasium-{self.gymnasium}-python-{self.python}"

    @property
    def pins(self) -> dict[str, str]:
        """The packages whose versions are not those of `constraints.txt`."""
        pins = {"gymnasium": self.gymnasium}
        if self.sb3:
            pins |= {"stable-baselines3": self.sb3, "sb3-contrib": self.sb3}
        return pins

    @property
    def extra(self) -> str:
        """The extra of sb3compat with what the tests need."""
        return "dev" if self.sb3 else "test"

    @property
    def packages(self) -> tuple[str, ...]:
        """What is installed besides."""
        return ()

    @property
    def alone(self) -> tuple[str, ...]:
        """What is installed without its dependencies, as they ask for older versions."""
        return ()


def environments() -> list[Environment]:
    """All that are tried."""
    return [
        Environment(sb3, gymnasium, python)
        for sb3, gymnasium in PAIRS
        for python in ((PYTHON_WITH_SB3,) if sb3 else PYTHONS_WITHOUT_SB3)
    ]


if __name__ == "__main__":
    print(json.dumps([{"name": each.name, "python": each.python} for each in environments()]))
