"""The naive twins: what each kernel computes, slow and obvious. They are the definition."""

import itertools
import math
from fractions import Fraction

import numpy as np


def unit_scale(X):
    """Return the power of two that brings the largest magnitude into [1/2, 1)."""
    largest = float(np.abs(X).max(initial=0.0))
    return 1.0 if largest == 0 else math.ldexp(1.0, min(-math.frexp(largest)[1], 1023))


def distances(X, point):
    """Return squared distances, added column by column: NumPy's own sum adds in another order."""
    total = np.zeros(len(X))
    for j in range(X.shape[1]):
        difference = X[:, j] - point[j]
        total += difference * difference
    return total


def centroid(X):
    """Return the correctly rounded sums, divided."""
    return np.array([math.fsum(column) / len(X) for column in X.T])


def farthest(X, point, records):
    """Return the farthest of some records; of equally far ones the lowest number."""
    records = np.sort(records)
    return int(records[np.argmax(distances(X[records], point))])


def nearest(X, point, k, records):
    """Return the k nearest of some records, nearest first, ties by number."""
    records = np.sort(records)
    return records[np.argsort(distances(X[records], point), kind="stable")[:k]]


def mdav(X, k):
    """Partition by MDAV as read in docs/design.md."""
    X = X * unit_scale(X)
    remaining = np.arange(len(X))
    cells = []

    def form_cell(record):
        nonlocal remaining
        remaining = remaining[remaining != record]
        members = nearest(X, X[record], k - 1, remaining)
        remaining = np.setdiff1d(remaining, members)
        cells.append([record, *members])

    while len(remaining) >= 2 * k:
        p = farthest(X, centroid(X[remaining]), remaining)
        form_cell(p)
        form_cell(farthest(X, X[p], remaining))
    if len(remaining) >= k:
        cells.append(remaining)
    labels = numbered(len(X), cells)
    if len(remaining) < k:
        join_nearest(X, labels, cells, remaining)
    return labels


def cell_sums(X, labels, n_cells):
    """Return the sum of the records of each cell."""
    return np.array([[math.fsum(column) for column in X[labels == c].T] for c in range(n_cells)])


def cell_spread(X, labels, n_cells):
    """Return the sum of squared distances to the cell's mean, for each cell."""
    return np.array([distances(X[labels == c], centroid(X[labels == c])).sum() for c in range(n_cells)])


def co_moments(columns, weights):
    """Return the means and covariances of columns of fractions, exactly."""
    total = sum(weights)
    means = [sum(w * v for v, w in zip(column, weights, strict=True)) / total for column in columns]
    away = [[v - mean for v in column] for column, mean in zip(columns, means, strict=True)]
    return means, [[sum(w * a * b for w, a, b in zip(weights, x, y, strict=True)) / total for y in away] for x in away]


def agreeing_records(columns):
    """Return the number of each combination of words, in the order in which they first occur."""
    numbers = {}
    return [numbers.setdefault(row, len(numbers)) for row in zip(*(c.tolist() for c in columns), strict=True)]


def inside_intervals(numbers, exponent, origin, own, intervals):
    """Count the numbers between the ends of the interval of their own value, and within reach of its centre."""
    low, high, centre, reach = intervals
    scaled = np.ldexp(numbers, exponent) - origin
    between = sum(low[o] <= x <= high[o] for x, o in zip(numbers, own, strict=True))
    return between, sum(abs(s - centre[o]) <= reach for s, o in zip(scaled, own, strict=True))


def first_places(codes, n_codes):
    """Return where each code first occurs, after the last record if it does not."""
    return [[*codes.tolist(), code].index(code) for code in range(n_codes)]


def join_nearest(X, labels, cells, left):
    """Let each record that is left over join the cell with the nearest centroid; the centroids stay."""
    centroids = np.array([centroid(X[cell]) for cell in cells])
    for record in left:
        labels[record] = np.argmin(distances(centroids, X[record]))


def numbered(n_records, cells):
    """Return labels that number the cells in the order of the list; -1 for a record in none."""
    labels = np.full(n_records, -1)
    for number, cell in enumerate(cells):
        labels[cell] = number
    return labels


def grow(X, record, k, records):
    """Return a record and, k - 1 times, the one of the others nearest to the centroid so far."""
    cell = [int(record)]
    others = records[records != record]
    total = X[record].copy()
    while len(cell) < k:
        (found,) = nearest(X, total / len(cell), 1, others)
        cell.append(int(found))
        total = total + X[found]
        others = others[others != found]
    return cell


def centroid_method(X, k):
    """Partition by the Centroid method as read in src/shoal/methods/centroid.py."""
    X = X * unit_scale(X)
    remaining = np.arange(len(X))
    cells = []
    while len(remaining) >= k:
        cells.append(grow(X, farthest(X, centroid(X[remaining]), remaining), k, remaining))
        remaining = np.setdiff1d(remaining, cells[-1])
    labels = numbered(len(X), cells)
    join_nearest(X, labels, cells, remaining)
    return labels


def farthest_pair(X, records):
    """Return the two records farthest apart; of equally far ones the lowest numbers."""
    best = (-1.0, -1, -1)
    for i, record in enumerate(np.sort(records)[:-1]):
        others = np.sort(records)[i + 1 :]
        squared = distances(X[others], X[record])
        if squared.max() > best[0]:
            best = (squared.max(), int(record), int(others[np.argmax(squared)]))
    return best[1:]


def diameter(X, k):
    """Partition by the Diameter method as read in src/shoal/methods/diameter.py."""
    X = X * unit_scale(X)
    remaining = np.arange(len(X))
    cells = []
    while len(remaining) >= k:
        r, s = farthest_pair(X, remaining)
        cells.append(grow(X, r, k, remaining))
        remaining = np.setdiff1d(remaining, cells[-1])
        if len(remaining) >= k:
            start = s if s in remaining else farthest(X, X[r], remaining)
            cells.append(grow(X, start, k, remaining))
            remaining = np.setdiff1d(remaining, cells[-1])
    labels = numbered(len(X), cells)
    join_nearest(X, labels, cells, remaining)
    return labels


def vmdav(X, k, gamma):
    """Partition by V-MDAV as read in src/shoal/methods/vmdav.py."""
    X = X * unit_scale(X)
    centre = centroid(X)
    remaining = np.arange(len(X))
    cells = []
    while len(remaining) >= k:
        start = farthest(X, centre, remaining)
        others = remaining[remaining != start]
        cell = [start, *nearest(X, X[start], k - 1, others)]
        remaining = np.setdiff1d(remaining, cell)
        while gamma > 0 and len(cell) < 2 * k - 1 and len(remaining) > 1:
            inward, newcomer = min(
                (squared, record)
                for member in cell
                for squared, record in zip(distances(X[remaining], X[member]), remaining, strict=True)
            )
            outward = distances(X[remaining[remaining != newcomer]], X[newcomer]).min()
            if not math.sqrt(inward) < gamma * math.sqrt(outward):
                break
            cell.append(newcomer)
            remaining = remaining[remaining != newcomer]
        cells.append(cell)
    labels = numbered(len(X), cells)
    join_nearest(X, labels, cells, remaining)
    return labels


def tfrp(X, k):
    """Partition by phase I of TFRP as read in docs/design.md."""
    X = X * unit_scale(X)
    references = [np.full(X.shape[1], X.min()), np.full(X.shape[1], X.max())]
    remaining = np.arange(len(X))
    cells = []
    for number in range(len(X) // k):
        start = farthest(X, references[number % 2], remaining)
        others = remaining[remaining != start]
        cells.append([start, *nearest(X, X[start], k - 1, others)])
        remaining = np.setdiff1d(remaining, cells[-1])
    sums = np.array([[math.fsum(column) for column in X[cell].T] for cell in cells])
    last = references[(len(cells) - 1) % 2]
    for record in remaining[np.argsort(-distances(X[remaining], last), kind="stable")]:
        sizes = np.array([len(cell) for cell in cells])
        joined = np.argmin(distances(sums / sizes[:, None], X[record]))
        cells[joined].append(record)
        sums[joined] += X[record]
    return numbered(len(X), cells)


def dissolve(X, labels, k, recut):
    """Dissolve cells as phase II of TFRP does, as read in docs/design.md."""
    X = X * unit_scale(X)
    cells = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]

    def gse(cell):
        return math.fsum(distances(X[cell], centroid(X[cell])))

    centroids = np.array([centroid(X[cell]) for cell in cells])
    for c in np.argsort([-gse(cell) for cell in cells], kind="stable"):
        if len(cells[c]) >= 2 * k:
            continue
        grown = {}
        for record in cells[c][np.argsort(-distances(X[cells[c]], centroids[c]), kind="stable")]:
            sizes = [len(grown.get(other, cell)) for other, cell in enumerate(cells)]
            room = [other for other, size in enumerate(sizes) if other != c and 0 < size < 4 * k - 1]
            if not room:
                break
            joined = room[np.argmin(distances(centroids[room], X[record]))]
            grown[joined] = np.append(grown.get(joined, cells[joined]), record)
        else:
            before = math.fsum([gse(cells[c]), *(gse(cells[other]) for other in grown)])
            if math.fsum(gse(cell) for cell in grown.values()) < before:
                cells[c] = np.empty(0, dtype=int)
                for other, cell in grown.items():
                    cells[other] = np.sort(cell)
                    centroids[other] = centroid(X[cells[other]])
    small = [cell for cell in cells if 0 < len(cell) < 2 * k]
    for cell in (cell for cell in cells if len(cell) >= 2 * k):
        parts = recut(X[cell], k)
        small += [cell[parts == part] for part in range(parts.max() + 1)]
    return numbered(len(X), small)


def mst(X, k):
    """Return the labels of MST partitioning: trees from a matrix of all distances, sizes counted anew at each edge."""
    X = X * unit_scale(X)
    inside, edges = [0], []
    while len(inside) < len(X):
        outside = [i for i in range(len(X)) if i not in inside]
        near = {i: min((distances(X[[i]], X[j])[0], place, j) for place, j in enumerate(inside)) for i in outside}
        newcomer = min(outside, key=lambda i: (near[i][0], i))
        edges.append((newcomer, near[newcomer][2], near[newcomer][0]))
        inside.append(newcomer)
    kept = [(one, other) for one, other, _ in edges]
    for one, other, _ in sorted(edges, key=lambda edge: -edge[2]):
        without = [edge for edge in kept if edge != (one, other)]
        if min(len(tree) for tree in trees(len(X), without)) >= k:
            kept = without
    cells = []
    for tree in trees(len(X), kept):
        if len(tree) < 2 * k:
            cells.append(tree)
        else:
            labels = centroid_method(X[tree], k)
            cells += [[tree[i] for i in np.flatnonzero(labels == cell)] for cell in range(labels.max() + 1)]
    return numbered(len(X), cells)


def trees(n, edges):
    """Return the records of each tree, by their lowest."""
    tree_of = list(range(n))
    for one, other in edges:
        old, new = tree_of[one], tree_of[other]
        tree_of = [new if tree == old else tree for tree in tree_of]
    return sorted([i for i in range(n) if tree_of[i] == tree] for tree in set(tree_of))


def sse(values):
    """Return the squared distances of some numbers from their mean, summed, without any rounding."""
    values = [Fraction(float(value)) for value in values]
    return sum(value * value for value in values) - sum(values) ** 2 / len(values)


def least_sse(values, k):
    """Return the least SSE of all partitions into cells of at least k, whichever records go together. No rounding."""
    whole = 2 ** len(values) - 1
    members = [[i for i in range(len(values)) if cell >> i & 1] for cell in range(whole + 1)]
    cost = {cell: sse(values[members[cell]]) for cell in range(whole + 1) if len(members[cell]) >= k}
    least = {0: Fraction(0)}
    for records in range(1, whole + 1):
        lowest = records & -records
        totals = [
            cost[cell] + least[records ^ cell]
            for cell in cost
            if cell & records == cell and cell & lowest and records ^ cell in least
        ]
        if totals:
            least[records] = min(totals)
    return least[whole]


def univariate(values, k):
    """Return the labels of least SSE, of those with neighbours together; ties: the smallest last cell. No rounding."""
    order = np.argsort(values, kind="stable")
    line = [Fraction(float(values[i])) for i in order]
    sums = [Fraction(0), *itertools.accumulate(line)]
    squares = [Fraction(0), *itertools.accumulate(value * value for value in line)]
    least, last_cell = {0: Fraction(0)}, {}
    for j in range(k, len(line) + 1):
        totals = {
            j - i: least[i] + squares[j] - squares[i] - (sums[j] - sums[i]) ** 2 / (j - i)
            for i in range(j - k, -1, -1)
            if i in least
        }
        last_cell[j] = min(totals, key=totals.get)
        least[j] = totals[last_cell[j]]
    cells, j = [], len(line)
    while j > 0:
        cells.insert(0, order[j - last_cell[j] : j])
        j -= last_cell[j]
    return labels_of(cells)


def labels_of(cells):
    """Number the cells in the order in which they are given."""
    labels = np.empty(sum(map(len, cells)), dtype=np.int64)
    for number, cell in enumerate(cells):
        labels[cell] = number
    return labels


def assign(X, points):
    """Return the number of the nearest point of each record, the lowest of equally near ones."""
    return np.array([np.argmin(distances(points, record)) for record in X])


def split(X, parts, k):
    """Split parts around their farthest pairs until all have k to 2k-1; cells are numbered by their first records."""
    X = X * unit_scale(X)
    waiting = [np.flatnonzero(parts == part) for part in range(parts.max() + 1)]
    cells = []
    while waiting:
        piece = waiting.pop()
        if len(piece) < 2 * k:
            cells.append(piece)
        else:
            waiting += split_in_two(X, piece, k)
    return labels_of(sorted(cells, key=min))


def split_in_two(X, piece, k):
    """Return the two sides of a piece: around its farthest pair, the rest to the nearer centroid."""
    squared = np.array([distances(X[piece], X[i]) for i in piece])
    np.fill_diagonal(squared, -1.0)
    i, j = (piece[place] for place in np.unravel_index(np.argmax(squared), squared.shape))
    if j == farthest(X, centroid(X[piece]), [i, j]):
        i, j = j, i
    rest = np.setdiff1d(piece, [i, j])
    first = [i, *nearest(X, X[i], k - 1, rest)]
    rest = np.setdiff1d(rest, first)
    second = [j, *nearest(X, X[j], k - 1, rest)]
    rest = np.setdiff1d(rest, second)
    to_first = distances(X[rest], centroid(X[first]))
    to_second = distances(X[rest], centroid(X[second]))
    first.extend(rest[to_first < to_second])
    second.extend(rest[to_first > to_second])
    for record in rest[to_first == to_second]:
        (first if len(first) <= len(second) else second).append(record)
    return [np.sort(first), np.sort(second)]


def topdown(X, k, seed, c, n_steps=10):
    """Partition from above as read in docs/topdown.md: c-means++, small parts merged, farthest-pair splits."""
    X = X * unit_scale(X)
    rng = np.random.default_rng(seed)
    outwards = np.argsort(distances(X, centroid(X)), kind="stable")
    centroids = first_centroids(X[outwards], c, rng) if c > 1 else X[:1]
    parts = assign(X, centroids)
    for _ in range(n_steps):
        centroids = np.array([centroid(X[parts == part]) for part in np.unique(parts)])
        parts = assign(X, centroids)
    return split(X, merge_small(X, parts, k), k)


def first_centroids(X, c, rng):
    """Draw records by their squared distance from those drawn before."""
    drawn = [X[rng.integers(len(X))]]
    while len(drawn) < c:
        squared = np.min([distances(X, centroid) for centroid in drawn], axis=0)
        if not squared.any():
            break
        ball = rng.random() * np.cumsum(squared)[-1]
        at = 0
        while at < len(X) - 1 and np.cumsum(squared)[at] <= ball:
            at += 1
        drawn.append(X[at])
    return np.array(drawn)


def merge_small(X, parts, k):
    """Merge parts below k, the smallest first, into the part with the nearest centroid."""
    parts = np.unique(parts, return_inverse=True)[1]
    sums = [np.array([math.fsum(column) for column in X[parts == part].T]) for part in range(parts.max() + 1)]
    while np.bincount(parts).min() < k:
        sizes = np.bincount(parts)
        small = int(np.argmin(sizes))
        centroids = np.array(sums) / sizes[:, None]
        others = [part for part in range(len(sizes)) if part != small]
        other = others[np.argmin(distances(centroids[others], centroids[small]))]
        sums[other] = sums[other] + sums[small]
        del sums[small]
        parts = np.where(parts == small, other, parts)
        parts = np.where(parts > small, parts - 1, parts)
    return parts


def arrive(X, base, k, inertial=False, split_mid=False):
    """Let the records behind the base join its cells as read in docs/incremental.md; cells may grow beyond 2k."""
    X = X * unit_scale(X)
    cells = [list(np.flatnonzero(base == c)) for c in range(base.max() + 1)]
    centroids = [centroid(X[cell]) for cell in cells]
    for record in range(len(base), len(X)):
        sizes = np.array([len(cell) for cell in cells])
        cost = (sizes / (sizes + 1) if inertial else 1.0) * distances(np.array(centroids), X[record])
        joined = int(np.argmin(cost))
        cells[joined].append(record)
        if split_mid and len(cells[joined]) >= 2 * k:
            members = np.array(cells[joined])
            parts = mdav(X[members], k)
            new = [list(members[parts == part]) for part in range(parts.max() + 1)]
            cells[joined : joined + 1] = new[:1]
            cells += new[1:]
            centroids[joined] = centroid(X[new[0]])
            centroids += [centroid(X[cell]) for cell in new[1:]]
    return labels_of(cells)


def split_large(X, labels, k):
    """Cut the cells of 2k records and more by MDAV; cells that stay come first."""
    cells = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    result = [cell for cell in cells if len(cell) < 2 * k]
    for cell in (cell for cell in cells if len(cell) >= 2 * k):
        parts = mdav(X[cell], k)
        result += [cell[parts == part] for part in range(parts.max() + 1)]
    return labels_of(result)


def linkage(X, points, labels):
    """Rank everything by its distance: (ahead, ties) of the own original, and of the own released record."""
    scale = min(unit_scale(X), unit_scale(points))
    squared = np.array([distances(points * scale, x) for x in X * scale])
    own = squared[np.arange(len(X)), labels]
    to_point = squared[:, labels]
    originals = ((to_point < own).sum(axis=0), (to_point == own).sum(axis=0))
    sizes = np.bincount(labels)
    released = ((squared < own[:, None]) @ sizes, (squared == own[:, None]) @ sizes)
    return originals, released


def certainty_penalty(columns, labels):
    """Return the summed penalty of all records: each class publishes its ranges, sets and common ancestors.

    A column is ("numbers", values, width), ("categories", codes, n_values) or ("tree", leaves, nodes, sizes).
    """
    total = 0.0
    for cell in np.unique(labels):
        members = np.flatnonzero(labels == cell)
        total += len(members) * sum(column_penalty(members, *column) for column in columns)
    return total


def column_penalty(members, kind, values, *about):
    """Return the penalty of one class in one column."""
    shown = values[members]
    if kind == "numbers":
        known = shown[~np.isnan(shown)]
        if 0 < len(known) < len(shown):
            return 1.0
        return (known.max() - known.min()) / about[0] if len(known) and about[0] else 0.0
    if kind == "categories":
        return (len(set(shown)) - 1) / max(about[0] - 1, 1)
    nodes, sizes = about
    level = next(level for level in range(nodes.shape[1]) if len(set(nodes[shown, level])) == 1)
    return (sizes[nodes[shown[0], level]] - 1) / max(len(nodes) - 1, 1)


def specialised(columns, k):
    """Return cells of at least k records: parts are cut by the column whose penalty falls most for the entropy.

    Columns are those of `certainty_penalty`: numbers first, then trees, then categories.
    """
    labels = np.empty(len(columns[0][1]), dtype=np.int64)
    parts, n_cells = [np.arange(len(labels))], 0
    while parts:
        part = parts.pop()
        best, groups = 0.0, None
        for column in columns if len(part) >= 2 * k else ():
            for tried in cuts_of(part, k, *column):
                gain = gain_of_cut(part, tried, column)
                if gain > best * (1 + 1e-9):
                    best, groups = gain, tried
        if groups is None:
            labels[part], n_cells = n_cells, n_cells + 1
        else:
            parts += [part[groups == group] for group in range(groups.max() + 1)]
    return labels


def cuts_of(part, k, kind, values, *about):
    """Yield the groups of a part into which a column cuts it: all values apart, or one of at least 1 in 64 records."""
    shown = values[part]
    if kind == "numbers":
        shown = lower_half(shown, k)
    elif kind == "tree":
        nodes = about[0][shown]
        shown = nodes[:, max((level for level in range(nodes.shape[1]) if len(set(nodes[:, level])) > 1), default=0)]
    found, codes, counts = np.unique(shown, return_inverse=True, return_counts=True)
    frequent = bool(len(found) > 2 and counts.max() * 64 >= len(part))
    for told_apart in [codes] + [(codes == counts.argmax()).astype(int)] * frequent:
        groups = groups_of_k(told_apart, k)
        if groups.any():
            yield groups


def lower_half(values, k):
    """Return 0 below the cut nearest to the median that leaves k on both sides, 1 above, 2 where missing."""
    known = np.sort(values[~np.isnan(values)])
    cuts = [cut for cut in range(k, len(known) - k + 1) if known[cut - 1] < known[cut]]
    nearest = min(cuts, key=lambda cut: abs(2 * cut - len(known)), default=None)
    above = np.zeros(len(values)) if nearest is None else values >= known[nearest]
    return np.where(np.isnan(values), 2, above).astype(int)


def groups_of_k(values, k):
    """Return a group for each value of at least k records and one for the rest, with the smallest if too few."""
    counts = np.bincount(values)
    rest = [value for value, count in enumerate(counts) if count < k]
    large = [value for value, count in enumerate(counts) if count >= k]
    if rest and large and counts[rest].sum() < k:
        rest.append(min(large, key=lambda value: counts[value]))
        large.remove(rest[-1])
    groups = np.zeros(len(values), dtype=int)
    for number, value in enumerate(large, start=bool(rest)):
        groups[values == value] = number
    return groups


def gain_of_cut(part, groups, column):
    """Return by how much groups lower the penalty of a column, over their entropy."""
    shares = np.bincount(groups) / len(groups)
    after = sum(share * column_penalty(part[groups == group], *column) for group, share in enumerate(shares))
    return (column_penalty(part, *column) - after) / -(shares * np.log(shares)).sum()
