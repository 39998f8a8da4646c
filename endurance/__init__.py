"""What the library holds up under: the page docs/explanation/how-it-holds-up.md, `make endurance`.

Each part runs in a process of its own, `python -m endurance.soak` and so on, which has a limit of
time and writes JSON into the file that its last argument names.
"""
