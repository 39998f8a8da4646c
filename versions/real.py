"""Run the training scripts of other libraries, each in an environment of its own: `make real`.

    python -m versions.real --only torchrl skrl

The scripts are in tests/real/. The exit status is 1 if one of them failed, or if a library could
not be installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from versions.install import ROOT, NotInstalledError, install
from versions.pairs import PYTHON_WITH_SB3, Environment

SCRIPTS = ROOT / "tests" / "real"


@dataclass(frozen=True)
class Library(Environment):
    """A library, the releases that were tried, and the pair that it runs with."""

    sb3: str | None = "2.9"
    gymnasium: str = "1.4"
    python: str = PYTHON_WITH_SB3
    library: str = ""
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    # Of what `constraints.txt` pins, the releases that the library asks for.
    others: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its folder."""
        return f"real-{self.library}"

    @property
    def pins(self) -> dict[str, str]:
        """The packages whose versions are not those of `constraints.txt`."""
        own = dict(p.split("==") for p in (*self.packages, *self.others) if "==" in p)
        releases = {name.partition("[")[0]: version for name, version in own.items()}
        return super().pins | {name: ".".join(v.split(".")[:2]) for name, v in releases.items()}

    @property
    def extra(self) -> str:
        """What the scripts need of sb3compat."""
        return "sb3,conformance"


LIBRARIES = (
    Library(library="cleanrl"),  # scripts in plain torch
    Library(library="torchrl", packages=("torchrl==0.14.1",)),
    Library(library="skrl", packages=("skrl==2.1.1",)),
    Library(library="agilerl", packages=("agilerl==2.58.0", "peft==0.21.2")),
    # Ray asks for exactly this Gymnasium.
    Library(library="rllib", sb3="2.8", gymnasium="1.2", packages=("ray[rllib]==2.60.0",)),
    Library(library="sbx", packages=("sbx-rl==0.28.0",)),
    Library(
        library="rl_zoo3",
        packages=("rl_zoo3==2.9.2",),
        others=("decorator==5.3", "moviepy==2.2", "pillow==11.3", "python-dateutil==2.9"),
    ),
    Library(
        library="imitation",
        packages=(
            "datasets==5.2.0",
            "optuna==5.0.0",
            "rich",
            "sacred==0.8.7",
            "scikit-learn==1.9.1",
            "tensorboard",
            "tqdm",
            "wasabi",
        ),
        # They ask for Gymnasium 0.29 and cloudpickle 1.6.
        alone=("imitation==1.0.1", "seals==0.2.1", "huggingface-sb3==2.1.0"),
        others=("wrapt==1.17",),
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Run the scripts of the libraries that were named, or of all.

    Returns:
        1 if not all of them passed, 2 if no library has such a name.
    """
    parser = argparse.ArgumentParser(prog="python -m versions.real", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="LIBRARY", help="these libraries")
    only = parser.parse_args(arguments).only
    chosen = [each for each in LIBRARIES if only is None or each.library in only]
    problems = [problem for each in chosen if (problem := _try(each)) is not None]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0 if chosen else 2


def _try(library: Library) -> str | None:
    """Run the scripts of a library; what went wrong, if anything did."""
    print(f"\n==== {library.library} ====", flush=True)
    try:
        python = install(library)
    except NotInstalledError as error:
        print(error, flush=True)
        return f"{library.library}: not run, see above"
    script = str(SCRIPTS / f"test_{library.library}.py")
    # What is skipped has not been tried.
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", script]
    done = subprocess.run(command, cwd=ROOT, check=False)
    return f"{library.library}: failed, see above" if done.returncode else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
