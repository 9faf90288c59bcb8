"""Sums over the stored entries of sparse rows: per column, and per pair of chosen columns."""

from numba import njit


@njit(cache=True, nogil=True)
def add_entries(indices, data, table, one):
    """Add to row j of `table` (p, 5) sum, sum of squares, smallest, largest and count of column j.

    `one` is 1 in the type of the table. Returns the position of the first index outside 0..p-1,
    or -1.
    """
    p = table.shape[0]
    for i in range(data.size):
        j = indices[i]
        if j < 0 or j >= p:
            return i
        x = one * data[i]
        table[j, 0] += x
        table[j, 1] += x * x
        if x < table[j, 2]:
            table[j, 2] = x
        if x > table[j, 3]:
            table[j, 3] = x
        table[j, 4] += one
    return -1


@njit(cache=True, nogil=True)
def add_pairs(indptr, indices, data, place, start, stop, second, sums, column, value):
    """Add x_a x_b for all pairs of chosen columns in rows start..stop-1 to `second` (m, m), and x_a
    to `sums` (m,).

    place (p,) is the position of a column among the chosen ones, or -1. Every pair is added once,
    to one of its two places. Scratch: column and value, as long as the longest row; with unsigned
    columns it takes a quarter less time, since they cannot count from the end.
    """
    for row in range(start, stop):
        count = 0
        for i in range(indptr[row], indptr[row + 1]):
            # Entries of columns not chosen are written too and overwritten by the next entry, since
            # a branch here would often be mispredicted.
            j = place[indices[i]]
            column[count] = j
            value[count] = data[i]
            count += j >= 0
        for a in range(count):
            x = value[a]
            sums[column[a]] += x
            line = second[column[a]]
            for b in range(a + 1):
                line[column[b]] += x * value[b]


@njit(cache=True, nogil=True)
def spread_rows(indptr, indices, data, place, start, stop, tile):
    """Write the chosen columns of rows start..stop-1 to a tile of zeros (rows, m)."""
    for row in range(start, stop):
        for i in range(indptr[row], indptr[row + 1]):
            j = place[indices[i]]
            if j >= 0:
                tile[row - start, j] = data[i]
