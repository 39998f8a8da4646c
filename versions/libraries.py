"""The libraries whose training scripts run on adapted environments: `make real`.

The scripts are in tests/real/. Each library has a virtual environment of its own.
"""

from __future__ import annotations

from versions.pairs import PYTHON_WITH_SB3, Environment


def _library(
    name: str,
    *packages: str,
    sb3: str = "2.9",
    gymnasium: str = "1.4",
    alone: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
) -> Environment:
    # What is set for all tests is set for Hypothesis.
    packages = ("hypothesis", *packages)
    return Environment(sb3, gymnasium, PYTHON_WITH_SB3, name, packages, alone, others)


LIBRARIES = (
    _library("cleanrl"),  # scripts in plain torch
    _library("torchrl", "torchrl==0.14.1"),
    _library("skrl", "skrl==2.1.1"),
    _library("agilerl", "agilerl==2.58.0", "peft==0.21.2"),
    # Ray asks for exactly this Gymnasium.
    _library("rllib", "ray[rllib]==2.60.0", sb3="2.8", gymnasium="1.2"),
    _library("sbx", "sbx-rl==0.28.0"),
    _library(
        "rl_zoo3",
        "rl_zoo3==2.9.2",
        "requests",  # which rl_zoo3.enjoy imports, and rl_zoo3 does not require
        others=("decorator==5.3", "moviepy==2.2", "pillow==11.3", "python-dateutil==2.9"),
    ),
    _library(
        "imitation",
        "datasets==5.2.0",
        "optuna==5.0.0",
        "rich",
        "sacred==0.8.7",
        "scikit-learn==1.9.1",
        "tensorboard",
        "tqdm",
        "wasabi",
        # They ask for Gymnasium 0.29 and cloudpickle 1.6.
        alone=("imitation==1.0.1", "seals==0.2.1", "huggingface-sb3==2.1.0"),
        others=("wrapt==1.17",),
    ),
)
