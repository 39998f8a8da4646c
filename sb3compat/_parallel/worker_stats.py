"""`WorkerStats`: records in SB3's logger where the time of a training goes."""

from __future__ import annotations

import time

from sb3compat._convert.arguments import check_fits, check_timeout
from sb3compat._parallel.adapter import ParallelVecEnv
from sb3compat._upstream.sb3 import BaseCallback
from sb3compat.errors import UnsupportedEnvError, shown


class WorkerStats(BaseCallback):
    """Records where the time of a `ParallelVecEnv` goes, for TensorBoard and the other loggers.

    Each value is about the time since the previous record:

    - `workers/wait_share`: the share of the time, from 0 to 1, for which this process waited for
      its workers. The rest is the algorithm's. With `parent_steps`, it includes its own rows.
    - `workers/busy_share`: the share of the time for which a worker stepped its rows, the mean of
      all workers.
    - `workers/step_ms/0` and so on: how many milliseconds a step took that worker.
    - `workers/restarts`: how many lost workers were replaced so far.

    If one `step_ms` is far above the others, the other workers wait for that worker. If they are
    similar and `wait_share` is far above `busy_share`, messages take most of the time. If
    `wait_share` is small, the algorithm takes most of the time.

    Without this callback, nothing is measured. With it, a step takes some microseconds longer.

    Args:
        seconds: How often to record at most, at the end of a rollout. An algorithm with short
            rollouts, such as DQN, would ask the workers all the time.
        verbose: As for any callback of SB3.

    Raises:
        ImportError: If Stable-Baselines3 is missing.
        TypeError: If `seconds` is no number.
        ValueError: If `seconds` is not positive and finite.
        UnsupportedEnvError: When the training starts, if the environment is no `ParallelVecEnv`.

    Example:
        >>> import sb3compat
        >>> from stable_baselines3 import PPO
        >>> env = sb3compat.make_vec_env(
        ...     "CartPole-v1", 4, vectorization_mode="parallel", workers=2
        ... )
        >>> model = PPO("MlpPolicy", env, n_steps=8, batch_size=32, device="cpu")
        >>> model = model.learn(32, callback=sb3compat.WorkerStats())
        >>> env.close()
    """

    def __init__(self, seconds: float = 1.0, verbose: int = 0) -> None:
        super().__init__(verbose)
        way_out = (
            "Leave it out for once a second. As a callback, pass WorkerStats(), not the class."
        )
        check_fits(seconds is not None, "seconds", seconds, "a number", way_out)
        check_timeout(seconds, "seconds", way_out)
        self._every = seconds

    def _on_training_start(self) -> None:
        env = self.training_env.unwrapped
        if not isinstance(env, ParallelVecEnv):
            raise UnsupportedEnvError(
                f"Expected a ParallelVecEnv, with or without wrappers, got {shown(env)} "
                f"({type(env).__name__}), which has no workers to measure. Make it by "
                "make_vec_env(id, n, vectorization_mode='parallel'), or leave WorkerStats out."
            )
        self._env = env
        self._begin, self._last = time.perf_counter(), env.worker_times()

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        now = time.perf_counter()
        passed = now - self._begin
        if passed < self._every:
            return
        found, last = self._env.worker_times(), self._last
        self._begin, self._last = now, found
        self.logger.record("workers/restarts", found.restarts)
        stepped, steps = found.stepped - last.stepped, found.steps - last.steps
        if found.restarts > last.restarts or not stepped.all():
            return  # how long a lost worker has stepped is lost with it
        self.logger.record("workers/wait_share", (found.waited - last.waited) / passed)
        self.logger.record("workers/busy_share", float(stepped.mean()) / passed)
        for worker, seconds in enumerate(stepped.tolist()):
            self.logger.record(f"workers/step_ms/{worker}", 1000 * seconds / max(steps, 1))
