"""All environments of this package by name: what they are, and what is wrong with the broken ones.

The modules fill `BROKEN` and `CORRECT` as they are imported; some of them need SB3.
"""

from importlib import import_module

from conformance.specimens.unseen.entry import BROKEN, CORRECT, Broken, Correct, Entry

__all__ = ["BROKEN", "CORRECT", "MODULES", "Broken", "Correct", "Entry"]

MODULES = [
    import_module(f"conformance.specimens.unseen.{name}")
    for name in (
        "broken_vec_native",
        "broken_vec_rows",
        "broken_vector_disabled",
        "broken_vector_native",
        "broken_vector_rows",
        "correct_vec_native",
        "correct_vec_others",
        "correct_vector_native",
        "correct_vector_others",
    )
]
