"""All environments that the kit is tried on, broken and correct ones, with one `registry`.

- `points`, `rows_env`: correct ones in small methods, so that each can be broken; `forms` of them;
- `broken/`: the mutants, each one of these with one small change;
- `accused`, `accused_in_rows`: correct ones that a check took for broken once;
- `worlds`: single environments that a check might take for broken: walls, pits, clocks that stop,
  actions that show a step later, resets that change nothing, objects that answer to any name;
- `unseen/`: by an author who had read neither the checks nor the mutants;
- `public_adapters/`: published bridges to SB3's `VecEnv`, ported; they are targets, and have
  verdicts in place of a registration.
"""
