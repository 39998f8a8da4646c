"""Environments that the checks were not written against, broken and correct ones.

They were written from the two contracts alone, by someone who had read neither the checks nor the
mutants. Importing this package enters them all; some of them need SB3.
"""

from conformance.specimens.unseen import (
    broken_vec_native,
    broken_vec_rows,
    broken_vector_disabled,
    broken_vector_native,
    broken_vector_rows,
    correct_vec_native,
    correct_vec_others,
    correct_vector_native,
    correct_vector_others,
)

MODULES = (
    broken_vec_native,
    broken_vec_rows,
    broken_vector_disabled,
    broken_vector_native,
    broken_vector_rows,
    correct_vec_native,
    correct_vec_others,
    correct_vector_native,
    correct_vector_others,
)
