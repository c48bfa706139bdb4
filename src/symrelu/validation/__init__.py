"""The only judge of what users pass in. Every message says what was required, what came, what to do.

``parameters`` judges single values, ``formats`` what kind of object a matrix is, ``matrices`` its values and
its symmetry, ``factors`` a factor; ``entries`` takes out what is unknown, ``scale`` brings the rest to order
one. Others import from here: which part judges what is nobody else's business.
"""

from __future__ import annotations

from symrelu.validation.entries import NothingObserved, as_array, divided, hidden, stored
from symrelu.validation.factors import check_factor, check_start
from symrelu.validation.formats import (
    check_memory,
    check_well_formed,
    is_well_formed_sparse,
    reject_foreign_objects,
    reject_masked_arrays,
    reject_text,
    reject_what_is_no_matrix,
)
from symrelu.validation.matrices import (
    check_hidden,
    check_mask,
    check_observed,
    check_rows,
    check_similarity,
    hidden_part,
)
from symrelu.validation.parameters import (
    check_callback,
    check_choice,
    check_integer,
    check_items,
    check_number,
    check_verbose,
    random_generator,
)
from symrelu.validation.scale import exponent_of, scale_exponent, scaled

__all__ = [
    "NothingObserved",
    "as_array",
    "check_callback",
    "check_choice",
    "check_factor",
    "check_hidden",
    "check_integer",
    "check_items",
    "check_mask",
    "check_memory",
    "check_number",
    "check_observed",
    "check_rows",
    "check_similarity",
    "check_start",
    "check_verbose",
    "check_well_formed",
    "divided",
    "exponent_of",
    "hidden",
    "hidden_part",
    "is_well_formed_sparse",
    "random_generator",
    "reject_foreign_objects",
    "reject_masked_arrays",
    "reject_text",
    "reject_what_is_no_matrix",
    "scale_exponent",
    "scaled",
    "stored",
]
