"""The checks of an SB3 `VecEnv`."""
