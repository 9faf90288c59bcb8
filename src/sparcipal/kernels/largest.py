"""The largest entries of rows, one pass over each."""

from numba import njit


@njit(cache=True, nogil=True)
def tops(rows, out):
    """Write to row i of out (n, count) the `count` largest entries of row i of rows, as a heap.

    out[i, 0] is the least of them: most entries of a long row are dismissed by one comparison.
    """
    n, m = rows.shape
    count = out.shape[1]
    for i in range(n):
        for j in range(count):
            # sift up: a parent is at most as large as its children
            entry = rows[i, j]
            place = j
            while place > 0:
                parent = (place - 1) >> 1
                if out[i, parent] <= entry:
                    break
                out[i, place] = out[i, parent]
                place = parent
            out[i, place] = entry
        for j in range(count, m):
            entry = rows[i, j]
            if entry <= out[i, 0]:
                continue
            place = 0
            while True:
                child = 2 * place + 1
                if child >= count:
                    break
                if child + 1 < count and out[i, child + 1] < out[i, child]:
                    child += 1
                if out[i, child] >= entry:
                    break
                out[i, place] = out[i, child]
                place = child
            out[i, place] = entry
