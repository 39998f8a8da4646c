"""The checks of a Gymnasium `VectorEnv`."""
