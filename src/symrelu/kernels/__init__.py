"""Plain functions on raw arrays, and the runtime that they need (threads, compilation, memory).

================= ===========================================================================
streaming         a pass over all pairs, tile by tile, shared among threads
tiles             the entries of M sorted by tile, and the residual of one tile
atomics           atomic operations, for compiled code in several threads
threads           work shared among threads, with BLAS held at one thread
sparse_products   the product of a sparse matrix and a few columns
scores            entries of X: of given pairs, and the largest of each row
neighbor_counts   pairs on the wrong side of a threshold on X, counted over all pairs
vectors           inner products and scaled sums of large arrays
pair_lists        lists of the zeros of M at which X can be positive, and the scans that make them
integer_rows      products of rows of 16-bit integers, compared with a threshold
row_references    rows at an earlier time, how far they have moved, their cosines
pair_passes       one pass over the support and such a list
pair_curvature    the second derivative of the objective on the same pairs
row_products      inner products of a row with several others, and sums of multiples of rows
transposition     lists of pairs by their other item
row_systems       one small linear system for each row of M
curved_rows       the second derivative with respect to each row, factored
lanes             sums of products for systems that are solved side by side
vector_code       parts of the code of compiled functions that compute with vectors
convex_rows       one convex problem for each new row
least_norm        well-scaled axes and the minimum of least norm, for these convex problems
arpack            a few leading eigenpairs, reproducible
nearest_clusters  similarities between clusters, kept sparse while the clusters merge
jit               how functions are compiled, and a cache that is allowed to fail
compilation       notices that functions are compiled, which can take long
memory            available memory, and batches that fit into it
one_time_warnings warnings that are never errors, and those issued once per process
shared_context    a setting of the process that overlapping blocks share
================= ===========================================================================
"""
