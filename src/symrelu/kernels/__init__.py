"""Plain functions on raw arrays: they know nothing of problems, solvers or fits.

================= ===========================================================================
tiles             the residual, formed and multiplied tile by tile
threads           worker threads of one pass, with BLAS held at one thread
row_systems       one small linear system for each row of M
convex_rows       one convex problem for each new row
least_norm        well-scaled axes and the minimum of least norm, for these convex problems
arpack            a few leading eigenpairs, reproducible
nearest_clusters  similarities between clusters, kept sparse while the clusters merge
jit               how functions are compiled, and a cache that is allowed to fail
memory            available memory, and batches that fit into it
one_time_warnings warnings that are issued once per process
================= ===========================================================================
"""
