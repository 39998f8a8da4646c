"""Mutants: sub-environments, rendering and closing."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing

from conformance.specimens.points import Config, Kept, Points
from conformance.specimens.registry import vec_env_mutant as mutant

# Sub-environments


@mutant("set_attr_only_named_rows")
class SetsAttributesEverywhere(Points):
    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        super().set_attr(attr_name, value)


@mutant("set_attr_only_named_rows")
class SetsAttributesEverywhereForRowZero(Points):
    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        super().set_attr(attr_name, value, indices or None)


@mutant("get_attr_indices")
class AttributesInRowOrder(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return super().get_attr(attr_name, sorted(self.named(indices)))


@mutant("get_attr_indices")
class AttributesOfAnEarlierCall(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.found: dict[Any, Any] = {}

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        key = attr_name, str(indices)
        self.found[key] = self.found.get(key) or super().get_attr(attr_name, indices)
        return self.found[key]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        super().set_attr(attr_name, value, indices)
        self.found.clear()


@mutant("get_attr_indices")
class AttributesKeptUnderOtherIndices(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.found: dict[Any, Any] = {}

    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        key = attr_name, str(indices)
        if key not in self.found:
            self.found[key] = super().get_attr(attr_name, indices)
        return list(self.found[key])

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        super().set_attr(attr_name, value, indices)
        self.found.pop((attr_name, str(indices)), None)

    def reset(self) -> Any:
        self.found.clear()
        return super().reset()


@mutant("numpy_int_indices")
class PythonIntsOnly(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        if isinstance(indices, np.ndarray):
            raise TypeError(f"Expected ints, got indices={indices!r}.")
        return super().get_attr(attr_name, indices)


@mutant("missing_attr_raises_and_survives")
class MissingAttributeIsAKeyError(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        try:
            return super().get_attr(attr_name, indices)
        except AttributeError as error:
            raise KeyError(attr_name) from error


@mutant("missing_attr_raises_and_survives")
class BusyAfterAMethodThatRaised(Points):
    busy = False

    def env_method(self, method_name: str, *args: Any, **kwargs: Any) -> Any:
        if self.busy:
            raise RuntimeError("Expected the last call to have returned.")
        self.busy = True
        result = super().env_method(method_name, *args, **kwargs)
        self.busy = False
        return result


@mutant("has_attr_truthful")
class HasEverything(Points):
    def has_attr(self, attr_name: str) -> bool:
        return True


@mutant("env_method_args")
class DropsKeywords(Points):
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        dropped = {} if method_name == "kit_echo" else kwargs
        return super().env_method(method_name, *args, indices=indices, **dropped)


@mutant("env_method_args")
class CallsAllRowsForRowZero(Points):
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        return super().env_method(method_name, *args, indices=indices or None, **kwargs)


@mutant("env_is_wrapped_per_row")
class WrappedInEverything(Points):
    def is_wrapped(self, env: Any, wrapper_class: type) -> bool:
        return True


@mutant("env_is_wrapped_per_row")
class SeesTheOutermostWrapper(Kept):
    def make_row(self, row: int) -> Any:
        return OrderEnforcing(super().make_row(row), disable_render_order_enforcing=True)

    def is_wrapped(self, env: Any, wrapper_class: type) -> bool:
        return isinstance(env, wrapper_class)


@mutant("env_is_wrapped_per_row")
class DeniesTheMonitor(Kept):
    def make_row(self, row: int) -> Any:
        from stable_baselines3.common.monitor import Monitor

        return Monitor(super().make_row(row))

    def is_wrapped(self, env: Any, wrapper_class: type) -> bool:
        return wrapper_class.__name__ != "Monitor" and super().is_wrapped(env, wrapper_class)


@mutant("env_is_wrapped_per_row")
class NeverWrapped(Kept):
    def is_wrapped(self, env: Any, wrapper_class: type) -> bool:
        return False


@mutant("env_is_wrapped_per_row")
class WrappedOnceForAll(Points):
    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> Any:
        return super().env_is_wrapped(wrapper_class, indices)[:1]


# Rendering, life


@mutant("get_images_n_frames")
class OneFrameForAll(Points):
    def get_images(self) -> Any:
        return super().get_images()[:1]


@mutant("get_images_n_frames")
class OneCanvasForAll(Points):
    def get_images(self) -> Any:
        frames = super().get_images()
        for frame in frames:
            frames[0][:] = frame
        return [frames[0]] * len(frames)


@mutant("get_images_n_frames")
class FramesOverEarlierOnes(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.canvas = np.zeros((6, 4, 3), np.uint8)

    def get_images(self) -> Any:
        frames = []
        for i, env in enumerate(self.envs):
            self.canvas[i] = env.unwrapped.time
            frames.append(self.canvas.copy())
        return frames


@mutant("get_images_n_frames")
class FramesInReverse(Points):
    def get_images(self) -> Any:
        return super().get_images()[::-1]


@mutant("get_images_n_frames")
class RenderReturnsAList(Points):
    def render(self, mode: str | None = None) -> Any:
        picture = super().render(mode)
        return picture if picture is None else self.get_images()


@mutant("frames_of_own_rows")
class FramesShowAllRows(Points):
    def get_images(self) -> Any:
        far = sum(np.abs(env.unwrapped.point).sum() for env in self.envs)
        return [frame + np.uint8(4 * far % 200) for frame in super().get_images()]


@mutant("render_mismatch_warns")
class RendersWithoutAWord(Points):
    def render(self, mode: str | None = None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().render(mode)


@mutant("close_closes_what_it_wraps")
class ClosesItselfOnly(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.venv = Points(config)


class _Holds(gym.Wrapper[Any, Any, Any, Any]):
    def close(self) -> None:
        super().close()


@mutant("close_closes_what_it_wraps")
class LeavesItsRowsOpen(Kept):
    def make_row(self, row: int) -> Any:
        return _Holds(super().make_row(row))

    def close(self) -> None:
        self.closed = True


@mutant("close_after_error")
class CannotCloseAfterAnError(Points):
    failed = False

    def step_async(self, actions: Any) -> None:
        self.failed = True
        super().step_async(actions)
        self.failed = False

    def close(self) -> None:
        if self.failed:
            raise BrokenPipeError("worker 0 is gone")
        super().close()


@mutant("worker_exception_keeps_type")
class WorkerDies(Points):
    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> Any:
        try:
            return super().env_method(method_name, *args, indices=indices, **kwargs)
        except Exception:
            raise EOFError from None


@mutant("access_works_or_is_refused")
class SetsOutsideAndGetsInside(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return [getattr(self.envs[i].unwrapped, attr_name) for i in self.named(indices)]


@mutant("access_works_or_is_refused")
class OneValueForAllRows(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        return super().get_attr(attr_name, indices)[:1]


@mutant("reading_changes_nothing")
class RenderingDraws(Points):
    def get_images(self) -> Any:
        for env in self.envs:
            env.unwrapped.np_random.random()
        return super().get_images()


@mutant("reading_changes_nothing")
class ReadingMakesAStep(Points):
    def get_attr(self, attr_name: str, indices: Any = None) -> Any:
        for i in self.named(indices):
            self.envs[i].unwrapped.point = self.envs[i].unwrapped.point + 0.01
        return super().get_attr(attr_name, indices)


@mutant("nothing_left_after_close")
class ProcessLeft(Points):
    """Has a process that waits for work."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ours, theirs = multiprocessing.Pipe()
        # By a fork, and not for ever: a run makes dozens of these.
        context = multiprocessing.get_context("fork")
        context.Process(target=_wait, args=(theirs,), daemon=True).start()


def _wait(pipe: Any) -> None:
    pipe.poll(20)


@mutant("memory_does_not_grow")
class KeepsInfos(Points):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.ended: list[Any] = []

    def end(self, i: int, last: Any, info: dict[str, Any]) -> Any:
        self.ended.append((last, dict(info)))
        return super().end(i, last, info)
