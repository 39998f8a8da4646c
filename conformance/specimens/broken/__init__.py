"""Mutants: environments that break one contract each, and the checks that have to fail them.

The kit has to fail each with the checks that it names, and with no other. A mutant that names
several breaks several contracts with one defect, and a comment says why.
"""
