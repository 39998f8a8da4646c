"""`trace`: step an environment, and show what each API returns around the ends of episodes."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from typing import Any

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from sb3compat._convert.arguments import plain_count
from sb3compat._convert.types import AnyVectorEnv
from sb3compat._to_gymnasium.adapter import to_gymnasium
from sb3compat._to_sb3.accept import check_env, find_mode
from sb3compat._to_sb3.adapter import to_sb3
from sb3compat._trace.endings import endings_of
from sb3compat._trace.record import Layout, Mark, marks_in
from sb3compat._trace.steps import Stepping
from sb3compat.conformance.findings import said_by
from sb3compat.errors import ConversionError, UnsupportedEnvError, shown

_ROWS = 3
# The order in which layouts are shown, after the environment's own.
_MODES = (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED)


@dataclass(frozen=True)
class Trace:
    """The ends of episodes as each API returns them; `trace` makes it.

    Attributes:
        name: The environment.
        layouts: One for each API, that of the environment itself first.
        rows: The rows that are shown.
        seed: The seed of the environment and of the actions.
        steps: The most steps that each API may have taken.
    """

    name: str
    layouts: tuple[Layout, ...]
    rows: tuple[int, ...]
    seed: int
    steps: int

    @property
    def ended(self) -> bool:
        """Whether an episode ended, so that there is something to see."""
        return any(layout.endings for layout in self.layouts)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The values that look wrong, each once.

        An environment without marks may still be wrong: run the kit.
        """
        return marks_in(self.layouts)

    def show(self, width: int | None = None) -> None:
        """Print the trace.

        Args:
            width: The width in characters; by default that of the terminal.

        Raises:
            ModuleNotFoundError: If rich is missing.
        """
        from rich.console import Console

        self._print(Console(width=width))

    def svg(self, width: int = 150) -> str:
        """The trace as an SVG picture, `width` characters wide.

        Raises:
            ModuleNotFoundError: If rich is missing.
        """
        from rich.console import Console

        # It prints nothing.
        console = Console(file=io.StringIO(), record=True, width=width, force_terminal=True)
        self._print(console)
        return console.export_svg(title=self.name)

    def _print(self, console: Any) -> None:
        from sb3compat._trace.terminal import print_trace

        print_trace(console, self)

    def html(self) -> str:
        """The trace as one HTML file without external files, with the layouts side by side.

        Raises:
            ModuleNotFoundError: If jinja2 is missing.
        """
        from jinja2 import Environment, FileSystemLoader, StrictUndefined

        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        by_api = [(each, {(e.row, e.episode): e for e in each.endings}) for each in self.layouts]
        episodes = sorted({key for _, endings in by_api for key in endings})
        page = environment.get_template("trace.html.jinja")
        return page.render(vars(self), by_api=by_api, episodes=episodes, marks=self.marks)

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks: its styles must not affect the notebook."""
        from html import escape

        frame = "width:100%;height:40em;border:0"
        return (
            f'<iframe sandbox style="{frame}" srcdoc="{escape(self.html(), quote=True)}"></iframe>'
        )


def trace(
    env: Any,
    *,
    episodes: int = 2,
    seed: int = 0,
    rows: int | Iterable[int] | None = None,
    max_steps: int = 1000,
    autoreset_mode: AutoresetMode | str | None = None,
) -> Trace:
    """Step an environment, and record what each API returns around the ends of its episodes.

    The environment is stepped directly, and then through `to_sb3` or `to_gymnasium` with each of
    the other APIs: SB3's, and Gymnasium's three autoreset modes. Each time it is reset with the
    same seed, and each row takes the same random actions. If the environment cannot be presented
    with one of these APIs, the trace says why.

    Values that fail a check of the kit are marked. Some checks need several episodes: for them, the
    environment itself is stepped on up to four ends in each row, and then reset a few times.

    Args:
        env: A `VectorEnv` or a `VecEnv`, or a function that makes one. A function is called once
            for each API. An environment is used for all of them; reset it afterwards.
        episodes: How many episodes of each row to show.
        seed: The seed of the environment and of the actions.
        rows: The rows to show: how many, or their indices. By default the first three.
        max_steps: After how many steps to stop, even if fewer episodes have ended.
        autoreset_mode: The autoreset mode of a `VectorEnv` that does not declare it.

    Returns:
        A `Trace`; `show()` prints it, `svg()` and `html()` give pictures.

    Raises:
        UnsupportedEnvError: If `env` is not a vector environment.
        AutoresetModeError: If a `VectorEnv` does not declare its mode, and none is given.
        ValueError: If an argument is out of range.

    Example:
        >>> import gymnasium as gym, sb3compat
        >>> found = sb3compat.trace(lambda: gym.make_vec("CartPole-v1", num_envs=2), episodes=1)
        >>> found.layouts[0].api, len(found.layouts[0].endings), found.marks
        ('Gymnasium NEXT_STEP', 2, ())
    """
    episodes, max_steps = plain_count("episodes", episodes), plain_count("max_steps", max_steps)
    seed = plain_count("seed", seed, 0)  # spaces take no negative one
    making = callable(env) and not hasattr(env, "num_envs")
    first = env() if making else env
    try:
        ways = list(_ways(first, autoreset_mode))
        chosen = _rows(rows, first.num_envs)
    except Exception:
        if making and hasattr(first, "close"):
            first.close()
        raise
    layouts = []
    for number, (layout, mode, present) in enumerate(ways):
        gc.collect()  # the last record, which may be large: it refers to itself
        used = env() if making and number else first
        try:
            stepping = Stepping(present(used), mode, chosen, seed, max_steps)
            stepping.to_ends(episodes)
            calls = len(stepping.record.calls)
            # With the other APIs the same would come again.
            if not number:
                stepping.beyond()
        except Exception as error:
            refused = isinstance(error, ConversionError)
            if not refused and not number:  # the environment itself fails
                raise
            why = str(error) if refused else said_by(error)
            layouts.append(replace(layout, refusal=why))
        else:
            endings = endings_of(stepping.record, chosen, episodes=episodes, calls=calls)
            layouts.append(replace(layout, endings=endings))
        finally:
            if making:
                used.close()
    return Trace(_name(first), tuple(layouts), chosen, seed, max_steps)


# A layout that has no endings yet, its autoreset mode, and what presents an environment like that.
_Way = tuple[Layout, AutoresetMode | None, Callable[[Any], Any]]


def _ways(env: Any, given: AutoresetMode | str | None) -> Iterator[_Way]:
    """The APIs, that of the environment itself first."""
    if not isinstance(env, VectorEnv):
        if not all(hasattr(env, name) for name in ("num_envs", "step", "reset")):
            raise UnsupportedEnvError(
                "Expected a VectorEnv or a VecEnv, or a function that makes one, got "
                f"{shown(env)} ({type(env).__name__}). Make a vector environment: "
                "gymnasium.make_vec(id, num_envs=n), or SyncVectorEnv([make_single] * n)."
            )
        yield Layout("SB3 VecEnv", "as it is"), None, _as_it_is
        for mode in _MODES:
            yield _by_to_gymnasium(mode, _as_it_is)
        return
    check_env(env)
    own = find_mode(env, given)

    def adapted(used: AnyVectorEnv) -> Any:
        return to_sb3(used, autoreset_mode=given)

    yield Layout(_api(own), "as it is"), own, _as_it_is
    yield Layout("SB3 VecEnv", "to_sb3(env)"), None, adapted
    for mode in _MODES:
        if mode != own:
            yield _by_to_gymnasium(mode, adapted)


def _as_it_is(env: Any) -> Any:
    return env


def _by_to_gymnasium(mode: AutoresetMode, vec_env_of: Callable[[Any], Any]) -> _Way:
    def present(used: Any) -> Any:
        return to_gymnasium(vec_env_of(used), autoreset_mode=mode)

    return Layout(_api(mode), f'to_gymnasium(…, autoreset_mode="{mode.value}")'), mode, present


def _api(mode: AutoresetMode) -> str:
    return f"Gymnasium {mode.name}"


def _rows(given: int | Iterable[int] | None, num_envs: int) -> tuple[int, ...]:
    if given is None:
        given = min(_ROWS, num_envs)
    try:
        rows = tuple(map(index, given) if isinstance(given, Iterable) else range(given))
    except TypeError:
        rows = ()
    if not rows or not all(0 <= row < num_envs for row in rows):
        raise ValueError(
            f"Expected rows to be a number from 1 to {num_envs}, or indices below {num_envs}, got "
            f"rows={given!r}. Pass one of these, or leave it out for the first rows."
        )
    return rows


def _name(env: Any) -> str:
    """The environment's id, or else its classes, the outermost first."""
    spec = getattr(env, "spec", None)
    if isinstance(spec, EnvSpec):  # EnvPool has another kind
        return f"{spec.id} ({type(env.unwrapped).__name__})"
    names = [type(env).__name__, type(getattr(env, "unwrapped", env)).__name__]
    return " over ".join(dict.fromkeys(names))
