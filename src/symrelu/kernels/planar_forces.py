"""Forces between points of the plane: along the edges of a graph, and to and from a regular grid.

Each point is spread over the 4 x 4 nodes of the grid around it by cubic Lagrange interpolation, and a field on
the grid is read with the same weights. A point therefore exerts no force on itself, whatever the rounding.
"""

from __future__ import annotations

from symrelu.kernels.jit import compiled

NODES = 4  # of the grid along each side, between which a point is interpolated


@compiled
def attract(points, indptr, indices, weights, forces):  # type: ignore[no-untyped-def]
    """Write the sums of w_ij (y_i - y_j) / (1 + |y_i - y_j|^2) over the edges of each point to ``forces``.

    ``points`` and ``forces`` have shape (2, n).
    """
    for i in range(points.shape[1]):
        x, y = points[0, i], points[1, i]
        along_x, along_y = 0.0, 0.0
        for place in range(indptr[i], indptr[i + 1]):
            j = indices[place]
            dx, dy = x - points[0, j], y - points[1, j]
            share = weights[place] / (1.0 + dx * dx + dy * dy)
            along_x += share * dx
            along_y += share * dy
        forces[0, i], forces[1, i] = along_x, along_y


@compiled
def cubic(t):  # type: ignore[no-untyped-def]
    """Return the weights of the nodes -1, 0, 1 and 2 for a place t in [0, 1)."""
    return (
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    )


@compiled
def spread(places, grid):  # type: ignore[no-untyped-def]
    """Add the weights of all points to the nodes of a grid.

    ``places`` has shape (2, n): coordinates in units of the grid, at least 1 and less than its size - 2.
    """
    for i in range(places.shape[1]):
        row, column = int(places[0, i]), int(places[1, i])
        of_row, of_column = cubic(places[0, i] - row), cubic(places[1, i] - column)
        for p in range(NODES):
            for q in range(NODES):
                grid[row - 1 + p, column - 1 + q] += of_row[p] * of_column[q]


@compiled
def gather(places, fields, values):  # type: ignore[no-untyped-def]
    """Write the values of several fields on a grid at all points to ``values`` of shape (n_fields, n)."""
    for i in range(places.shape[1]):
        row, column = int(places[0, i]), int(places[1, i])
        of_row, of_column = cubic(places[0, i] - row), cubic(places[1, i] - column)
        for field in range(fields.shape[0]):
            total = 0.0
            for p in range(NODES):
                for q in range(NODES):
                    total += of_row[p] * of_column[q] * fields[field, row - 1 + p, column - 1 + q]
            values[field, i] = total


@compiled
def correlation(weights, lag):  # type: ignore[no-untyped-def]
    """Return the sum of w_p w_q over the nodes with |p - q| = lag."""
    total = 0.0
    for p in range(NODES - lag):
        total += weights[p] * weights[p + lag]
    return total if lag == 0 else 2 * total


@compiled
def own_field(places, kernel):  # type: ignore[no-untyped-def]
    """Return the sum over all points of the field that each one has at its own place.

    ``kernel[a, b]`` is the field of a node at a distance of a rows and b columns.
    """
    total = 0.0
    for i in range(places.shape[1]):
        of_row = cubic(places[0, i] - int(places[0, i]))
        of_column = cubic(places[1, i] - int(places[1, i]))
        for a in range(NODES):
            for b in range(NODES):
                total += correlation(of_row, a) * correlation(of_column, b) * kernel[a, b]
    return total
