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
    """A pair, the Python that it is tried with, and what runs there.

    Attributes:
        sb3: The first two numbers of Stable-Baselines3's version, or None.
        gymnasium: The first two numbers of Gymnasium's version.
        python: The first two numbers of Python's version.
        library: Another library, whose training scripts run; empty for the tests.
        packages: What is installed besides.
        alone: What is installed without its dependencies, as they ask for older versions.
        others: Releases, of what `constraints.txt` pins, that the library asks for.
    """

    sb3: str | None
    gymnasium: str
    python: str
    library: str = ""
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called on the command line, and its folder."""
        if self.library:
            return f"real-{self.library}"
        sb3 = f"sb3-{self.sb3}" if self.sb3 else "no-sb3"
        return f"{sb3}-gymnasium-{self.gymnasium}-python-{self.python}"

    @property
    def pins(self) -> dict[str, str]:
        """The packages whose versions are not those of `constraints.txt`."""
        pins = {"gymnasium": self.gymnasium}
        if self.sb3:
            pins |= {"stable-baselines3": self.sb3, "sb3-contrib": self.sb3}
        for package in (*self.packages, *self.others):
            name, _, release = package.partition("==")
            if release:
                pins[name.partition("[")[0]] = ".".join(release.split(".")[:2])
        return pins

    @property
    def extra(self) -> str:
        """The extra of sb3compat with what runs there."""
        if self.library:
            return "sb3,conformance"
        return "dev" if self.sb3 else "test"


def environments() -> list[Environment]:
    """Those that run the tests."""
    return [
        Environment(sb3, gymnasium, python)
        for sb3, gymnasium in PAIRS
        for python in ((PYTHON_WITH_SB3,) if sb3 else PYTHONS_WITHOUT_SB3)
    ]


if __name__ == "__main__":
    print(json.dumps([{"name": each.name, "python": each.python} for each in environments()]))
