"""Published bridges to SB3's `VecEnv`, written anew over a small simulator.

Each module is one adapter. Its docstring names the repository, the version and the lines that the
behaviour comes from; the code is ours. `verdicts/` says what is wrong with each, and which check of
the kit finds it.
"""
