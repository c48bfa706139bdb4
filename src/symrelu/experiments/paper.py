"""The numbers that the paper prints, and its settings.

Q. Wang, "An efficient alternating algorithm for ReLU-based symmetric matrix decomposition", arXiv:2503.16846.
The synthetic table has relative errors. The caption of the table of real data also says relative error, but its
numbers are half squared errors (the documentation shows why).
"""

from __future__ import annotations

MOMENTA = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)

# (m, r-bar, p, r): the columns of the synthetic table.
SYNTHETIC_COLUMNS = (
    (500, 10, 0.0, 10),
    (500, 10, 0.0, 12),
    (500, 10, 0.1, 70),
    (500, 10, 0.1, 120),
    (1000, 20, 0.05, 90),
    (1000, 20, 0.05, 150),
    (1000, 20, 0.08, 150),
    (1000, 20, 0.08, 200),
)

# One row for each of MOMENTA.
_SYNTHETIC_ERRORS = (
    (9.8e-5, 2.4e-3, 1.6e-1, 1.4e-1, 1.6e-1, 1.3e-1, 1.8e-1, 1.8e-1),
    (9.7e-5, 1.9e-3, 1.6e-1, 1.4e-1, 1.6e-1, 1.2e-1, 1.7e-1, 1.6e-1),
    (9.9e-5, 1.5e-3, 1.6e-1, 1.3e-1, 1.5e-1, 1.1e-1, 1.6e-1, 1.4e-1),
    (9.6e-5, 1.0e-3, 1.5e-1, 1.3e-1, 1.5e-1, 1.0e-1, 1.5e-1, 1.3e-1),
    (9.3e-5, 5.6e-4, 1.5e-1, 1.3e-1, 1.5e-1, 9.7e-2, 1.4e-1, 1.2e-1),
    (8.2e-5, 1.9e-4, 1.5e-1, 1.2e-1, 1.4e-1, 9.5e-2, 1.4e-1, 1.1e-1),
    (8.6e-5, 9.9e-5, 1.5e-1, 1.2e-1, 1.4e-1, 9.4e-2, 1.3e-1, 1.1e-1),
)

SYNTHETIC_ERROR = {
    (momentum, column): error
    for momentum, errors in zip(MOMENTA, _SYNTHETIC_ERRORS, strict=True)
    for column, error in zip(SYNTHETIC_COLUMNS, errors, strict=True)
}
# The matrices that no U U^T of small rank reproduces.
SHIFTED = ((500, 10, 0.1), (1000, 20, 0.05), (1000, 20, 0.08))
SYNTHETIC_MAX_ITER = 1000
SYNTHETIC_MAX_SECONDS = 30
TOL = 1e-4

# The two panels of the first figure.
SYNTHETIC_FIGURE = ((500, 10, 0.0, 12), (1000, 20, 0.08, 150))

# Rank of the real data sets, and the numbers in the table for the four methods.
REAL_RANK = {"ORL": 40, "YaleB": 38, "COIL20": 20, "COIL100": 100, "PIE": 68, "TDT2": 30}
REAL_HALF_SQUARED_ERROR = {
    "ORL": {"SymANLS": 0.21, "SymHALS": 0.21, "APB": 0.17, "AAPB": 0.16},
    "YaleB": {"SymANLS": 0.41, "SymHALS": 0.41, "APB": 0.37, "AAPB": 0.36},
    "COIL20": {"SymANLS": 0.43, "SymHALS": 0.43, "APB": 0.36, "AAPB": 0.35},
    "COIL100": {"SymANLS": 0.42, "SymHALS": 0.42, "APB": 0.39, "AAPB": 0.34},
    "PIE": {"SymANLS": 0.38, "SymHALS": 0.39, "APB": 0.37, "AAPB": 0.30},
    "TDT2": {"SymANLS": 0.48, "SymHALS": 0.48, "APB": 0.48, "AAPB": 0.46},
}
REAL_MAX_ITER = 100
REAL_MAX_SECONDS = 300

# The four panels of the second figure.
REAL_FIGURE = ("ORL", "COIL20", "PIE", "COIL100")

# The paper does not state a step size. Its theory allows 1; 10 was found to come close to its numbers.
STEP = 10.0
THEORY_STEP = 1.0
