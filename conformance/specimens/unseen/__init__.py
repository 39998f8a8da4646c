"""Environments that the checks were not written against: forty broken ones, forty correct ones.

They are written from the two contracts alone, by someone who has read neither the checks nor the
mutants. `registry` names them all.
"""
