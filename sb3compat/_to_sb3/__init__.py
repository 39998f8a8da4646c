"""A Gymnasium `VectorEnv` presented as a Stable-Baselines3 `VecEnv`."""
