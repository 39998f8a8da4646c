"""Find out which interface an environment has, and refuse objects that have none."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.vector import VectorEnv, VectorWrapper

from sb3compat.conformance.findings import FactoryError, Family, family_name, said_by, short
from sb3compat.conformance.program.script import PRELUDE


def check_factory(factory: object) -> None:
    """Refuse an object that is no function without arguments.

    Raises:
        FactoryError: If it is none.
    """
    expected = "Expected a function that makes the environment"
    if not callable(factory):
        hint = "Pass a function without arguments."
        if isinstance(factory, str):
            what = "Import the function and pass it; MODULE:NAME"
            if ":" not in factory:
                what = "Pass a function that makes it; an id"
            hint = f"{what} is for the command."
        elif "num_envs" in dir(factory):
            hint = f"Pass `lambda: {type(factory).__name__}(...)`: checks need new ones."
        raise FactoryError(f"{expected}, got {type(factory).__name__}: {short(factory)}. {hint}")
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # a builtin has no signature
        return
    try:
        signature.bind()
    except TypeError as error:
        raise FactoryError(
            f"{expected} and takes no arguments, got {short(factory)}: {error}. Write a function "
            f"without arguments, such as: def make_env(): return {_call(factory, signature)}"
        ) from None


def _call(factory: object, signature: inspect.Signature) -> str:
    """How to call a factory, with its required arguments by name."""
    required = [
        f"{name}=..."
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]
    name = getattr(factory, "__name__", "")
    return f"{name if name.isidentifier() else 'make'}({', '.join(required)})"


def offers(env: object, name: str) -> bool:
    """Whether an environment has an attribute, and does not simply answer to every name.

    Of an object whose `__getattr__` answers to anything, attributes that are set or defined count.
    """
    if not hasattr(env, name):
        return False
    if not hasattr(env, _NO_NAME):
        return True
    try:
        inspect.getattr_static(env, name)
    except AttributeError:
        return False
    return True


# A name that no environment uses.
_NO_NAME = "sb3compat_asks_for_no_such_attribute"


def family_of(env: object) -> Family:
    """Which of the two interfaces an environment has.

    Raises:
        FactoryError: If it has neither.
    """
    if isinstance(env, VectorEnv):
        return "vector_env"
    module = sys.modules.get("stable_baselines3.common.vec_env.base_vec_env")
    if module is not None and isinstance(env, module.VecEnv):
        return "vec_env"
    if all(offers(env, name) for name in ("num_envs", "step", "reset")):
        if offers(env, "single_observation_space"):
            return "vector_env"
        if offers(env, "step_async") and offers(env, "step_wait"):
            return "vec_env"
    hint = "Return one of these."
    if env is None:
        hint = "Does it return what it makes?"
    elif isinstance(env, gym.Env):
        hint = (
            "That is a single environment. Make several rows of it, for example by "
            "SyncVectorEnv([function] * 3)."
        )
    raise FactoryError(
        "Expected the factory to make a VecEnv (with num_envs, reset, step, step_async and "
        f"step_wait) or a gymnasium.vector.VectorEnv, got {type(env).__name__}: "
        f"{short(env)}. {hint}"
    )


def check_attributes(env: object, family: Family) -> None:
    """Refuse an environment without rows or without spaces, and one whose contract is another.

    Raises:
        FactoryError: If `num_envs` is no positive number, if a space is missing, or if Gymnasium is
            too old for autoreset modes and this is a `VectorEnv`.
    """
    if family == "vector_env" and not hasattr(gym.vector, "AutoresetMode"):
        raise FactoryError(
            "Expected Gymnasium 1.1 or newer to check a VectorEnv, whose contract depends on its "
            f"autoreset mode, got Gymnasium {gym.__version__}, which has none. Upgrade it: "
            "pip install 'gymnasium>=1.1'. A VecEnv can be checked with the old one."
        )
    names = ["num_envs", "observation_space", "action_space"]
    if family == "vector_env":
        names += ["single_observation_space", "single_action_space"]
    for name in names:
        try:
            value = getattr(env, name)
        except Exception as error:
            raise FactoryError(
                f"Expected {family_name(family)} with {', '.join(names)}, got "
                f"{type(env).__name__}, whose {name} raised {said_by(error)}. Set it in __init__."
            ) from None
        if name == "num_envs":
            if not _is_positive(value):
                raise FactoryError(
                    f"Expected at least one row, got num_envs={short(value)} "
                    f"({type(value).__name__}) in {type(env).__name__}. Set num_envs to the number "
                    "of rows."
                )
        elif not isinstance(value, spaces.Space):
            raise FactoryError(
                f"Expected a Gymnasium space, got {name}={short(value)} ({type(value).__name__}) "
                f"in {type(env).__name__}. Set {name} to one from gymnasium.spaces."
            )


def _is_positive(number: Any) -> bool:
    try:
        return int(number) > 0
    except (TypeError, ValueError):
        return False


def layers_of(env: object) -> list[Any]:
    """An environment and those that it wraps, the outermost first."""
    return [env, *PRELUDE["below"](env)]


def classes_of(env: object) -> list[str]:
    """The names of the classes of an environment and of those that it wraps, bases included."""
    found = [cls for layer in layers_of(env) for cls in type(layer).__mro__]
    return list(dict.fromkeys(f"{cls.__module__}.{cls.__qualname__}" for cls in found))


def mode_of(env: Any) -> str:
    """The value of the autoreset mode of a `VectorEnv`."""
    # Gymnasium has it since 1.1. A VecEnv can be checked without it.
    from gymnasium.vector import AutoresetMode

    inner = getattr(env, "unwrapped", env)
    declared = _changed_mode(env)
    if declared is None and offers(inner, "autoreset_mode"):
        declared = inner.autoreset_mode
        known = {mode.value for mode in AutoresetMode}
        # The innermost object may be a simulator, for which the attribute has another meaning.
        if not isinstance(inner, VectorEnv) and getattr(declared, "value", declared) not in known:
            declared = None
    if declared is None:
        declared = (env.metadata or {}).get("autoreset_mode", AutoresetMode.NEXT_STEP)
    return str(getattr(declared, "value", declared))


def _changed_mode(env: Any) -> Any:
    """The mode of the outermost wrapper whose metadata declare another one than those inside.

    Such a wrapper resets rows itself. None if there is none.
    """
    while isinstance(env, VectorWrapper):
        own, inside = ((each.metadata or {}).get("autoreset_mode") for each in (env, env.env))
        if own not in (None, inside):
            return own
        env = env.env
    return None


def takes_batches(env: Any) -> bool:
    """Whether `action_space` is one of batches; a check of its own fails if it is not."""
    try:
        return bool(PRELUDE["batched"](env.action_space, env.single_action_space, env.num_envs))
    except Exception:
        return True
