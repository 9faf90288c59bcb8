"""Best-first search over simplicial cones for max_{|c|=1} F(c), and the selections that F sums.

Generators are dyadic points of the cross-polytope |c|_1 = 1: halving an edge is exact. Arrays that
belong together are passed as tuples:

    question    rows, sizes, prices, s, positive: rows by decreasing norm, `sizes[i] = |v_i|^2`, so
                that every scan stops early
    selection   value, index: room for s rows
    places      points, dots, squares: the points, v_i.point for the first rows, F(point)
    edges       keys, tops, middles: a hash table of pairs of points, their T, and their midpoints
    tree        cones, bounds, children, splits: the cones as points, and how they were halved
    heap        keys, nodes: open cones, the largest bound first
"""

import math

from numba import njit

FINISHED, OUT_OF_ROOM, PAUSED = 0, 1, 2
LEAF = -1


@njit(cache=True, nogil=True)
def rise(keys, items, slot, key, item):
    """Put an item into a heap, smallest key first, upwards from a free slot."""
    while slot > 0:
        above = (slot - 1) >> 1
        if keys[above] <= key:
            break
        keys[slot] = keys[above]
        items[slot] = items[above]
        slot = above
    keys[slot] = key
    items[slot] = item


@njit(cache=True, nogil=True)
def sink(keys, items, size, key, item):
    """Put an item in the place of the root of a heap of `size` items."""
    slot = 0
    while True:
        below = 2 * slot + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[slot] = keys[below]
        items[slot] = items[below]
        slot = below
    keys[slot] = key
    items[slot] = item


@njit(cache=True, nogil=True)
def top_products(question, a, b, dots_a, dots_b, selection):
    """Select the s largest positive (v_i.a)(v_i.b) - price_i a.b; returns how many there are.

    dots_a and dots_b hold v_i.a and v_i.b for as many of the first rows as they are long.
    """
    rows, sizes, prices, s, positive = question
    value, index = selection
    r = rows.shape[1]
    inner = 0.0
    length_a = 0.0
    length_b = 0.0
    for j in range(r):
        inner += a[j] * b[j]
        length_a += a[j] * a[j]
        length_b += b[j] * b[j]
    # (v.a)(v.b) <= |v|^2 reach, with equality for v along the bisector of a and b.
    reach = 0.5 * (math.sqrt(length_a * length_b) + inner)
    count = 0
    floor = 0.0
    for i in range(rows.shape[0]):
        if sizes[i] * reach <= floor:
            break
        if i < dots_a.shape[0]:
            left = dots_a[i]
            right = dots_b[i]
        else:
            left = 0.0
            right = 0.0
            for j in range(r):
                left += rows[i, j] * a[j]
                right += rows[i, j] * b[j]
        if positive and (left <= 0.0 or right <= 0.0):
            continue
        gain = left * right - prices[i] * inner
        if gain <= floor:
            continue
        if count < s:
            rise(value, index, count, gain, i)
            count += 1
        else:
            sink(value, index, s, gain, i)
        if count == s:
            floor = value[0]
    return count


@njit(cache=True, nogil=True)
def ascend(question, c, unknown, selection, spare):
    """Alternate c -> its best rows -> their leading direction; returns the best F(c).

    A power step never lowers the value on fixed rows, nor does choosing the rows anew. c is
    overwritten; the point where the value was taken is left in `spare`. `unknown` is empty.
    """
    rows = question[0]
    value, index = selection
    r = rows.shape[1]
    best = -1.0
    for _ in range(200):
        count = top_products(question, c, c, unknown, unknown, selection)
        found = 0.0
        for q in range(count):
            found += value[q]
        if found <= best * (1.0 + 1e-12):
            break
        best = found
        for j in range(r):
            spare[j] = c[j]
            c[j] = 0.0
        for q in range(count):
            i = index[q]
            dot = 0.0
            for j in range(r):
                dot += rows[i, j] * spare[j]
            for j in range(r):
                c[j] += dot * rows[i, j]
        length = 0.0
        for j in range(r):
            length += c[j] * c[j]
        if length <= 0.0:
            break
        length = math.sqrt(length)
        for j in range(r):
            c[j] /= length
    return best


@njit(cache=True, nogil=True)
def copositive(inner, top, level, work):
    """True if level * inner - top is seen to be copositive, by any of three eliminations.

    The first is Cholesky's. The others eliminate a variable a_k >= 0 knowing that only negative
    entries of its row can lower the minimum: min over a_k >= 0 loses at most (b_-'x)^2 / pivot. The
    last takes the variables in reverse. A test that passes at one level passes at higher ones.
    """
    r = inner.shape[0]
    for turn in range(3):
        for j in range(r):
            for k in range(j + 1):
                entry = level * inner[j, k] - top[j, k]
                if turn < 2:
                    work[j, k] = entry
                else:
                    work[r - 1 - k, r - 1 - j] = entry
        passed = True
        for k in range(r):
            pivot = work[k, k]
            if pivot <= 0.0:
                passed = False
                break
            for j in range(k + 1, r):
                if turn > 0 and work[j, k] > 0.0:
                    work[j, k] = 0.0
                factor = work[j, k] / pivot
                for m in range(k + 1, j + 1):
                    work[j, m] -= factor * work[m, k]
        if passed:
            return True
    return False


@njit(cache=True, nogil=True)
def find_edge(keys, one, other):
    """Return the slot of an edge in the hash table, or the free slot for it, and its key."""
    mask = keys.shape[0] - 1
    key = (min(one, other) << 32) | max(one, other)
    slot = ((key * 0x9E3779B97F4A7C1) >> 20) & mask
    while keys[slot] != -1 and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot, key


@njit(cache=True, nogil=True)
def pair_value(question, a, b, places, selection):
    """Return the sum of the s largest products for points number a and b."""
    points, dots, _ = places
    count = top_products(question, points[a], points[b], dots[a], dots[b], selection)
    out = 0.0
    for q in range(count):
        out += selection[0][q]
    return out


@njit(cache=True, nogil=True)
def enter(question, a, places, selection):
    """Tabulate v_i.a for the first rows and F(a) for the new point number a."""
    rows = question[0]
    points, dots, squares = places
    for i in range(dots.shape[1]):
        dot = 0.0
        for m in range(rows.shape[1]):
            dot += rows[i, m] * points[a, m]
        dots[a, i] = dot
    squares[a] = pair_value(question, a, a, places, selection)


@njit(cache=True, nogil=True)
def measure(question, cone, places, edges, counts, inner, top, selection):
    """Fill the lower triangles of G and T for a cone; new edges enter the hash table."""
    points, _, squares = places
    keys, edge_top, edge_middle = edges
    r = cone.shape[0]
    for j in range(r):
        for k in range(j + 1):
            dot = 0.0
            for m in range(r):
                dot += points[cone[j], m] * points[cone[k], m]
            inner[j, k] = dot
        top[j, j] = squares[cone[j]]
        for k in range(j):
            slot, key = find_edge(keys, cone[j], cone[k])
            if keys[slot] == -1:
                keys[slot] = key
                edge_middle[slot] = -1
                counts[2] += 1
                edge_top[slot] = pair_value(question, cone[j], cone[k], places, selection)
            top[j, k] = edge_top[slot]


@njit(cache=True, nogil=True)
def cone_bound(inner, top, target, ceiling, work):
    """Return the smallest level proved in a short bisection; `ceiling` is a valid bound."""
    if ceiling <= target or copositive(inner, top, target, work):
        return target
    low = target
    high = ceiling
    for _ in range(6):
        level = 0.5 * (low + high)
        if copositive(inner, top, level, work):
            high = level
        else:
            low = level
    return high


@njit(cache=True, nogil=True)
def longest_edge(inner, top, lift):
    """Return the edge where interpolation can exceed F most, to second order in its angle.

    `lift` > 0 keeps cones from becoming needles where F vanishes.
    """
    widest = -1.0
    first = 1
    second = 0
    for j in range(inner.shape[0]):
        for k in range(j):
            lengths = math.sqrt(inner[j, j] * inner[k, k])
            weight = (top[j, j] / inner[j, j] + lift) * (top[k, k] / inner[k, k] + lift)
            score = (1.0 - inner[j, k] / lengths) * math.sqrt(weight)
            if score > widest:
                widest = score
                first = j
                second = k
    return first, second


@njit(cache=True, nogil=True)
def grow(question, accuracy, lift, counts, best, best_c, tree, heap, places, edges, selection,
         small, spare, unknown, max_cones):  # fmt: skip
    """Split the cone of largest bound until none exceeds best (1 + eps) + slack.

    accuracy = (eps, slack); counts = [cones, points, edges, heap size]. A negative bound marks
    a cone not yet measured; its absolute value is valid. A cone without children is a leaf of the
    tree. `small` (3, r, r) and `spare` (2, r) are scratch.
    """
    eps, slack = accuracy
    cones, bounds, child, split = tree
    heap_keys, heap_nodes = heap
    points, _, squares = places
    keys, _, edge_middle = edges
    r = points.shape[1]
    inner, top, work = small[0], small[1], small[2]
    fresh = 0
    while fresh < counts[0] and bounds[fresh] >= 0.0:
        fresh += 1
    while True:
        target = best[0] * (1.0 + eps) + slack
        while fresh < counts[0]:
            measure(question, cones[fresh], places, edges, counts, inner, top, selection)
            ceiling = -bounds[fresh]
            bounds[fresh] = cone_bound(inner, top, target, ceiling, work)
            if bounds[fresh] > target:
                rise(heap_keys, heap_nodes, counts[3], -bounds[fresh], fresh)
                counts[3] += 1
            fresh += 1
        if counts[3] == 0 or -heap_keys[0] <= target:
            return FINISHED
        if counts[0] >= max_cones:
            return PAUSED
        if (
            counts[0] + 2 > cones.shape[0]
            or counts[1] + 1 > points.shape[0]
            or 2 * (counts[2] + r + 1) > keys.shape[0]
        ):
            return OUT_OF_ROOM
        node = heap_nodes[0]
        counts[3] -= 1
        sink(heap_keys, heap_nodes, counts[3], heap_keys[counts[3]], heap_nodes[counts[3]])
        measure(question, cones[node], places, edges, counts, inner, top, selection)
        first, second = longest_edge(inner, top, lift)
        low = cones[node, first]
        high = cones[node, second]
        slot, _ = find_edge(keys, low, high)
        middle = edge_middle[slot]
        if middle < 0:
            middle = counts[1]
            counts[1] += 1
            edge_middle[slot] = middle
            length = 0.0
            for m in range(r):
                points[middle, m] = 0.5 * (points[low, m] + points[high, m])
                length += points[middle, m] * points[middle, m]
            enter(question, middle, places, selection)
            if squares[middle] > best[0] * length:
                for m in range(r):
                    spare[0, m] = points[middle, m] / math.sqrt(length)
                found = ascend(question, spare[0], unknown, selection, spare[1])
                if found > best[0]:
                    best[0] = found
                    for m in range(r):
                        best_c[m] = spare[1, m]
        split[node] = first * r + second
        child[node] = counts[0]
        for side in range(2):
            for m in range(r):
                cones[counts[0], m] = cones[node, m]
            cones[counts[0], first if side == 0 else second] = middle
            child[counts[0]] = LEAF
            bounds[counts[0]] = -bounds[node]
            counts[0] += 1
