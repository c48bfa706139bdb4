"""Validation of user input. Every message says what was required, what was passed, and what to do.

============ ================================================================================
parameters   single values: numbers, choices, indices of items, random states, callbacks
formats      the type and format of an object that should be a matrix
entries      removal of unobserved entries
matrices     the values and the symmetry of matrices and masks
factors      factors and starting points
scale        rescaling to entries of order one
============ ================================================================================

Other packages import from here, not from these modules.
"""

from __future__ import annotations

from symrelu.validation.entries import (
    NOTHING_OBSERVED,
    NothingObserved,
    above_diagonal,
    as_array,
    divided,
    hidden,
    off_diagonal,
    pair_mask,
    stored,
    within,
    without,
)
from symrelu.validation.factors import check_factor, check_start
from symrelu.validation.formats import (
    as_rectangular_array,
    check_memory,
    check_well_formed,
    is_well_formed_sparse,
    reject_foreign_objects,
    reject_masked_arrays,
    reject_non_matrix,
    reject_text,
)
from symrelu.validation.matrices import (
    DIAGONAL_SETTINGS,
    DIAGONALS,
    SUPPORTS,
    check_hidden,
    check_mask,
    check_observed,
    check_rows,
    check_similarity,
    find_asymmetry,
    hidden_part,
    read_rows,
    symmetry_tolerance,
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
    "DIAGONALS",
    "DIAGONAL_SETTINGS",
    "NOTHING_OBSERVED",
    "SUPPORTS",
    "NothingObserved",
    "above_diagonal",
    "as_array",
    "as_rectangular_array",
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
    "find_asymmetry",
    "hidden",
    "hidden_part",
    "is_well_formed_sparse",
    "off_diagonal",
    "pair_mask",
    "random_generator",
    "read_rows",
    "reject_foreign_objects",
    "reject_masked_arrays",
    "reject_non_matrix",
    "reject_text",
    "scale_exponent",
    "scaled",
    "stored",
    "symmetry_tolerance",
    "within",
    "without",
]
