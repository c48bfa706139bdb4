"""A fit as one HTML page: summary, interactive map, table of nodes, error, spectrum and matrices.

The page needs no other file and makes no request. Modules that prepare its data return plain values; only
``rendering`` knows HTML.
"""

from symrelu.report.writing import write

__all__ = ["write"]
