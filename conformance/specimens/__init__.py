"""Correct environments of many kinds: no check may accuse one of them.

Each is awkward in a way that a check might take for a mistake: walls, pits, clocks that stop,
actions that show a step later, resets that change nothing, objects that answer to any name.
"""
