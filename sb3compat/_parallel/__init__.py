"""Rows in worker processes, several in each: `ParallelVecEnv`."""
