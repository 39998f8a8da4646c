"""The kill matrix: every check run on every mutant, and on what is correct."""
