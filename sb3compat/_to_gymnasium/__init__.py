"""A Stable-Baselines3 `VecEnv` presented as a Gymnasium `VectorEnv`."""
