"""Modularity of a matrix of similarities, and the partition that maximises it (Lange, Rolnick and Kording
2022, section 2 and appendix A.1).

Without its diagonal the matrix A is scaled to A~ = A / sum(A); k = A~ 1 are the strengths of the units. For a
partition P (n units, c clusters), equation 6::

    Q(P) = tr(P' B P) = sum_ij B_ij [c_i = c_j],    B = A~ - k k'

The diagonal of B, -k_i^2, counts: all units in one cluster have Q = 0. Moving unit i changes Q by twice the
difference of (B P)_ic with i itself left out, so the kernels keep B P and update it in O(n) per move.

A unit without similarity to any other (k_i < 1e-15) is dead: it is in no cluster (label -1) and never moved.
Labels are numbered from 0 by first appearance. The random stream of a matrix comes from the seed and the
matrix's own content: its result is the same alone and in any batch.
"""

import hashlib
import math
import warnings
from collections import namedtuple

import numpy as np
from numba import njit

from neuronkit import InputError

DEAD = 1e-15  # strength under which a unit is in no cluster; mean of A under which there is no matrix
GAIN = 1e-12  # a smaller rise of Q is rounding
ENTROPY, SLACK = 0.15, 0.01  # nats, of one Monte Carlo choice
COLDEST, HOTTEST = math.log(1e-6), math.log(1e6)  # log temperature
ROUNDS = 200  # of the iterated local search

# A partition under change: labels (n,); BP (n + 1, n), row c the sum of B's rows of cluster c; size (n + 1,);
# clusters: all n + 1 ids, those in use first; place: where an id stands there; used (1,): how many are in use
State = namedtuple("State", "B labels BP size clusters place used")


def modularity(A, labels):
    """Q of a partition: sum_ij (A~_ij - k_i k_j) [c_i = c_j] (section 2, equation 6).

    A: (n, n), symmetric, not negative; its diagonal is left out. labels: (n,) integers, -1 for a unit in no
    cluster, or a soft partition, (n, c) with rows that sum to 1, for which Q = tr(P' B P). A matrix of zeros
    has no modularity: nan, with a RuntimeWarning. Raises InputError for anything else.

    Two triangles joined by one edge:

    >>> barbell = np.zeros((6, 6))
    >>> for i, j in [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]:
    ...     barbell[i, j] = barbell[j, i] = 1
    >>> round(modularity(barbell, [0, 0, 0, 1, 1, 1]), 4)  # 12/14 - 1/2
    0.3571
    """
    _need(np.ndim(A) == 2, f"A must be one (n, n) matrix here: its shape is {np.shape(A)}.")
    matrices, empty = _matrices(A)
    P = _membership(labels, matrices.shape[1])
    if empty[0]:
        return math.nan
    B, _ = _null_model(matrices[0])
    return float(np.sum(P * (B @ P)))


def maximize(A, *, method="paper", steps=5000, seed=0):
    """The largest Q found and its partition (appendix A.1), for one matrix or a batch.

    method="paper": spectral bisection, then `steps` Monte Carlo moves. method="ils": iterated local search from
    the same start, 200 rounds of perturbing, moving single units and merging clusters; higher Q in less time,
    but not what the paper reports; `steps` does not apply.

    A: (n, n) or (m, n, n), as in `modularity`. Returns (q, labels): a float and (n,) integers, or (m,) and
    (m, n). A matrix of zeros: nan and all -1, with a RuntimeWarning. Raises InputError.

    >>> squares = np.kron(np.eye(2), np.ones((4, 4)))
    >>> q, labels = maximize(squares)
    >>> round(q, 4), labels.tolist()
    (0.5, [0, 0, 0, 0, 1, 1, 1, 1])
    """
    _need(method in ("paper", "ils"), f"method must be 'paper' or 'ils', not {method!r}.")
    _need(steps >= 0, f"steps must be 0 or more, not {steps}.")

    def solve(_, B, live, stream):
        labels = _bisect(B, live, False)
        return _walk(B, labels, steps, stream) if method == "paper" else _search(B, labels, stream)

    return _each(A, solve, seed)


def spectral(A, *, variant="paper"):
    """Labels by spectral bisection: all live units together, then split by the sign of a leading vector.

    A cluster is split in two while that raises Q. variant="paper": the first singular vector of B[sub, sub],
    which may belong to a negative eigenvalue and then fails to split; variant="newman2006": the vector of the
    largest eigenvalue once the row sums of B[sub, sub] are taken off its diagonal.

    A: (n, n) or (m, n, n), as in `modularity`. Returns labels (n,) or (m, n); a matrix of zeros: all -1, with
    a RuntimeWarning. Raises InputError.
    """
    known = ("paper", "newman2006")
    _need(variant in known, f"variant must be 'paper' or 'newman2006', not {variant!r}.")
    return _each(A, lambda _, B, live, __: (0.0, _bisect(B, live, variant == "newman2006")))[1]


def monte_carlo(A, labels, *, steps=5000, seed=0):
    """The largest Q of all moves proposed in a random walk from `labels`, and its partition (appendix A.1).

    Each step draws a live unit, then its cluster out of those in use and an empty one, with probability
    proportional to exp(Q / T); T is set so that the entropy of this choice is 0.15 nats.

    A: (n, n) or (m, n, n), as in `modularity`; labels: integers, (n,) or (m, n), such as zeros (one cluster) or
    numpy.arange(n) (single units); dead units need no label, live ones need one of at least 0. Returns
    (q, labels) like `maximize`. Raises InputError.
    """
    _need(steps >= 0, f"steps must be 0 or more, not {steps}.")
    shape = np.shape(A)[:-1]
    labels = np.asarray(labels)
    fits = labels.shape == shape and labels.dtype.kind in "iu"
    _need(fits, f"labels must be integers of shape {shape}: theirs is {labels.shape}, {labels.dtype}.")
    starts = labels.reshape(-1, labels.shape[-1])

    def solve(index, B, live, stream):
        start = np.where(live, starts[index], -1)
        _need((start[live] >= 0).all(), "labels must be 0 or more for every live unit: give each a cluster.")
        return _walk(B, _renumbered(start), steps, stream)

    return _each(A, solve, seed)


def number_of_clusters(labels):
    """exp of the entropy of r, r_c = the fraction of all n units that is in cluster c (section 2).

    Dead units (-1) count in n and in no cluster. labels: (n,) integers. Raises InputError.

    >>> number_of_clusters([0, 0, 1, 1])
    2.0
    """
    labels = np.asarray(labels)
    _need(labels.ndim == 1 and labels.size > 0, f"labels must be (n,): their shape is {labels.shape}.")
    P = _membership(labels, len(labels))
    r = P.sum(0)[P.any(0)] / len(labels)
    return float(np.exp(-(r @ np.log(r))))


def _each(A, solve, seed=0):
    """q and labels by solve(index, B, live, stream) for every matrix that is not all zeros."""
    matrices, empty = _matrices(A)
    q = np.full(len(matrices), np.nan)
    labels = np.full(matrices.shape[:2], -1)
    for index in np.flatnonzero(~empty):
        B, live = _null_model(matrices[index])
        q[index], labels[index] = solve(index, B, live, _stream(seed, B))
    return (float(q[0]), labels[0]) if np.ndim(A) == 2 else (q, labels)


def _stream(seed, B):
    """State of a generator, the same for one seed and one matrix wherever it stands."""
    digest = hashlib.blake2b(B.tobytes(), digest_size=8, salt=int(seed).to_bytes(16, "little", signed=True))
    return np.frombuffer(digest.digest(), np.uint64).copy()


def _null_model(A):
    """B = A~ - k k' and which units are live."""
    scaled = A / A.sum()
    k = scaled.sum(1)
    return scaled - np.outer(k, k), k >= DEAD


def _matrices(A):
    """(m, n, n) float64 without diagonals, and which matrices are all zeros."""
    A = np.array(A, dtype=np.float64)
    square = A.ndim in (2, 3) and A.shape[-1] == A.shape[-2]
    _need(square, f"A must be square, (n, n) or (m, n, n): its shape is {A.shape}.")
    n = A.shape[-1]
    _need(n > 1, f"A has {n} unit: modularity needs two or more.")
    _need(np.isfinite(A).all(), "A has NaN or infinite entries: remove those units first.")
    A = A.reshape(-1, n, n)
    A[:, np.arange(n), np.arange(n)] = 0
    _need((A >= 0).all(), "A has negative entries: pass similarities, for example their absolute values.")
    flipped = A.transpose(0, 2, 1)
    close = np.abs(A - flipped) <= 1e-6 * A.max(axis=(1, 2), keepdims=True)
    _need(close.all(), "A is not symmetric: pass (A + A.T) / 2 if that is what you mean.")
    empty = A.mean(axis=(1, 2)) <= DEAD
    if empty.any():
        message = f"{empty.sum()} of {len(A)} matrices are all zeros: they have no modularity (nan)."
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    return (A + flipped) / 2, empty


def _membership(labels, n):
    """P (n, c) of hard or soft labels."""
    labels = np.asarray(labels)
    shaped = labels.ndim in (1, 2) and len(labels) == n
    _need(shaped, f"labels must have one entry or row for each of the {n} units: their shape is {labels.shape}.")
    if labels.ndim == 2:
        sums = np.isfinite(labels).all() and (labels >= 0).all() and np.allclose(labels.sum(1), 1, atol=1e-6)
        _need(sums, "Rows of soft labels must be 0 or more and sum to 1: divide each row by its sum.")
        return labels.astype(np.float64)
    whole = labels.dtype.kind in "iu" and labels.min() >= -1
    _need(whole, "labels must be integers from 0, or -1 for a unit in no cluster.")
    return (labels[:, None] == np.unique(labels[labels >= 0])).astype(np.float64)


def _need(condition, message):
    if not condition:
        raise InputError(message)


@njit(cache=True)
def _uniform(stream):
    """The next number in [0, 1) of a splitmix64 stream."""
    stream[0] += np.uint64(0x9E3779B97F4A7C15)
    z = stream[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(cache=True)
def _below(stream, n):
    return np.int64(_uniform(stream) * n)


@njit(cache=True)
def _renumbered(labels):
    """Cluster ids 0, 1, ... by first appearance."""
    new = np.full(len(labels), -1)
    count = 0
    for i in range(len(labels)):
        for j in range(i):
            if labels[j] == labels[i]:
                new[i] = new[j]
                break
        if new[i] < 0 and labels[i] >= 0:
            new[i] = count
            count += 1
    return new


@njit(cache=True)
def _begin(B, labels):
    n = len(labels)
    BP, size = np.zeros((n + 1, n)), np.zeros(n + 1, np.int64)
    for i in range(n):
        if labels[i] >= 0:
            BP[labels[i]] += B[i]
            size[labels[i]] += 1
    used = np.array([labels.max() + 1])
    return State(B, labels.copy(), BP, size, np.arange(n + 1), np.arange(n + 1), used)


@njit(cache=True)
def _q(s):
    """Q = sum_i (B P)_i,c(i)."""
    total = 0.0
    for i in range(len(s.labels)):
        if s.labels[i] >= 0:
            total += s.BP[s.labels[i], i]
    return total


@njit(cache=True)
def _swap(s, cluster, place):
    """Let `cluster` stand at `place` in the list of ids."""
    other, was = s.clusters[place], s.place[cluster]
    s.clusters[place], s.clusters[was] = cluster, other
    s.place[cluster], s.place[other] = place, was


@njit(cache=True)
def _move(s, i, cluster):
    old = s.labels[i]
    if old == cluster:
        return
    for j in range(len(s.labels)):
        s.BP[old, j] -= s.B[i, j]
        s.BP[cluster, j] += s.B[i, j]
    s.labels[i] = cluster
    s.size[old] -= 1
    s.size[cluster] += 1
    if s.size[cluster] == 1:
        _swap(s, cluster, s.used[0])
        s.used[0] += 1
    if s.size[old] == 0:
        s.used[0] -= 1
        _swap(s, old, s.used[0])
        s.BP[old] = 0.0  # what rounding left


@njit(cache=True)
def _scores(s, i, scores):
    """Q of unit i in each cluster in use and in an empty one, up to a constant; the number of options."""
    own = s.labels[i]
    for option in range(s.used[0]):
        cluster = s.clusters[option]
        scores[option] = 2 * (s.BP[cluster, i] - (s.B[i, i] if cluster == own else 0.0))
    scores[s.used[0]] = 0.0
    return s.used[0] + 1


@njit(cache=True)
def _weigh(scores, temperature, weights):
    """weights = exp((scores - max) / T); their sum, the entropy of the choice and its slope in log T."""
    top = scores.max()
    total = first = second = 0.0
    for option in range(len(scores)):
        x = (scores[option] - top) / temperature
        weights[option] = math.exp(x)
        total += weights[option]
        first += weights[option] * x
        second += weights[option] * x * x
    mean = first / total
    return total, math.log(total) - mean, second / total - mean * mean


@njit(cache=True)
def _temper(scores, warm, weights):
    """log T at which the choice has the wanted entropy, from a warm start, and the sum of the weights there.

    Newton's steps, bisection where they leave the bracket; with a tie at the top the entropy stays above what is
    wanted at any T, and the lowest T is the answer.
    """
    low, high, t = COLDEST, HOTTEST, warm
    while True:
        total, entropy, slope = _weigh(scores, math.exp(t), weights)
        if abs(entropy - ENTROPY) <= SLACK or high - low < 1e-3:
            return t, total
        if entropy > ENTROPY:
            high = t
        else:
            low = t
        t = t - (entropy - ENTROPY) / slope if slope > 0 else low
        if not low < t < high:
            t = (low + high) / 2


@njit(cache=True)
def _walk(B, labels, steps, stream):
    """Monte Carlo: the best of all partitions proposed."""
    s = _begin(B, labels)
    live = np.flatnonzero(labels >= 0)
    scores, weights = np.empty(len(labels) + 1), np.empty(len(labels) + 1)
    best, best_q, q, t = labels.copy(), _q(s), _q(s), math.log(1e-3)
    for _ in range(steps):
        i = live[_below(stream, len(live))]
        options = _scores(s, i, scores)
        now = scores[s.place[s.labels[i]]]
        top = scores[:options].argmax()
        if q + scores[top] - now > best_q + GAIN:
            best_q = q + scores[top] - now
            best[:] = s.labels
            best[i] = s.clusters[top]
        t, total = _temper(scores[:options], t, weights)
        rest = _uniform(stream) * total
        choice = 0
        while choice < options - 1 and rest >= weights[choice]:
            rest -= weights[choice]
            choice += 1
        q += scores[choice] - now
        _move(s, i, s.clusters[choice])
    best = _renumbered(best)
    return _q(_begin(B, best)), best


@njit(cache=True)
def _split(B, labels, cluster, refined):
    """The units that leave `cluster`: those on the negative side of the leading vector; none if Q does not rise."""
    sub = np.flatnonzero(labels == cluster)
    part = np.empty((len(sub), len(sub)))
    for a in range(len(sub)):
        for b in range(len(sub)):
            part[a, b] = B[sub[a], sub[b]]
    form = part - np.diag(part.sum(1)) if refined else part
    values, vectors = np.linalg.eigh(form)
    leading = len(sub) - 1 if refined else np.abs(values).argmax()
    vector = vectors[:, leading].copy()
    if vector[np.abs(vector).argmax()] < 0:  # the sign is the solver's whim
        vector = -vector
    away = vector < 0
    gain = 0.0
    for a in range(len(sub)):
        for b in range(len(sub)):
            if away[a] and not away[b]:
                gain -= 2 * part[a, b]
    return sub[away] if gain > GAIN else sub[:0]


@njit(cache=True)
def _bisect(B, live, refined):
    labels = np.where(live, 0, -1)
    cluster, count = 0, 1
    while cluster < count:
        leaving = _split(B, labels, cluster, refined)
        if len(leaving) > 0:
            labels[leaving] = count
            count += 1
        else:
            cluster += 1
    return _renumbered(labels)


@njit(cache=True)
def _settle(s, live, scores):
    """Move single units to their best cluster until none gains."""
    quiet, at = 0, 0
    while quiet < len(live):
        i = live[at]
        options = _scores(s, i, scores)
        top = scores[:options].argmax()
        quiet += 1
        if scores[top] > scores[s.place[s.labels[i]]] + GAIN:
            _move(s, i, s.clusters[top])
            quiet = 0
        at = (at + 1) % len(live)


@njit(cache=True)
def _merge(s):
    """Merge the two clusters that gain most, if any do; whether they did."""
    used = s.used[0]
    between = np.zeros((used, used))
    for i in range(len(s.labels)):
        if s.labels[i] >= 0:
            for c in range(used):
                between[s.place[s.labels[i]], c] += s.BP[s.clusters[c], i]
    for c in range(used):
        between[c, c] = -np.inf
    best = between.argmax()
    if between.flat[best] <= GAIN:
        return False
    source, target = s.clusters[best // used], s.clusters[best % used]
    for i in np.flatnonzero(s.labels == source):
        _move(s, i, target)
    return True


@njit(cache=True)
def _search(B, labels, stream):
    """Iterated local search: perturb the best partition, climb, keep what is no worse."""
    live = np.flatnonzero(labels >= 0)
    scores = np.empty(len(labels) + 1)
    best, best_q = labels.copy(), -np.inf
    s = _begin(B, labels)
    for _ in range(ROUNDS + 1):
        _settle(s, live, scores)
        while _merge(s):
            _settle(s, live, scores)
        q = _q(s)
        if q >= best_q - GAIN:
            best_q = max(q, best_q)
            best = _renumbered(s.labels)
        s = _begin(B, best)
        for _ in range(1 + _below(stream, max(1, len(live) // 3))):
            i = live[_below(stream, len(live))]
            _move(s, i, s.clusters[_below(stream, s.used[0] + 1)])
    return _q(_begin(B, best)), best
