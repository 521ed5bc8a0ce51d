"""Kernels that look for the partition of largest Q = sum_ij B_ij [c_i = c_j]; `modularity` feeds them.

B (n, n) float64, symmetric; labels (n,), -1 for dead units, else ids 0, 1, ... without gaps; stream (1,)
uint64, the state of a generator. Moving unit i changes Q by twice the difference of (B P)_ic with i itself
left out, so B P is kept and updated in O(n) per move. One module holds them all: numba's cache on disk does
not see an edit of a callee in another one.
"""

import math
from collections import namedtuple

import numpy as np
from numba import njit

GAIN = 1e-12  # a smaller rise of Q is rounding
ENTROPY, SLACK = 0.15, 0.01  # nats, of one Monte Carlo choice
PAIR = 3.3322  # gap / T of two options at that entropy
FAINT = -40.0  # log weight, beside the best option, that counts as none
COLDEST, HOTTEST = math.log(1e-6), math.log(1e6)  # log temperature
ROUNDS = 100  # of the iterated local search

# A partition under change: labels (n,); BP (n + 1, n), row c the sum of B's rows of cluster c; size (n + 1,);
# clusters: all n + 1 ids, those in use first; place: where an id stands there; used (1,): how many are in use
State = namedtuple("State", "B labels BP size clusters place used")


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
def renumbered(labels):
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
    ids = np.arange(n + 1)
    s = State(B, labels.copy(), np.zeros((n + 1, n)), np.zeros(n + 1, np.int64), ids, ids.copy(), np.zeros(1, np.int64))
    _restart(s, labels)
    return s


@njit(cache=True)
def _restart(s, labels):
    """Put the partition `labels` in place of the present one."""
    for place in range(s.used[0]):
        s.BP[s.clusters[place]] = 0.0
        s.size[s.clusters[place]] = 0
    s.clusters[:] = np.arange(len(s.place))
    s.place[:] = s.clusters
    s.labels[:] = labels
    for i in range(len(labels)):
        if labels[i] >= 0:
            s.BP[labels[i]] += s.B[i]
            s.size[labels[i]] += 1
    s.used[0] = labels.max() + 1


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
def _weigh(scores, top, temperature, weights):
    """weights = exp((scores - top) / T); their sum, the entropy of the choice and its slope in log T."""
    total = first = second = 0.0
    for option in range(len(scores)):
        x = (scores[option] - top) / temperature
        weights[option] = w = math.exp(x) if x > FAINT else 0.0
        total += w
        first += w * x
        second += w * x * x
    mean = first / total
    return total, math.log(total) - mean, second / total - mean * mean


@njit(cache=True)
def temper(scores, weights):
    """log T at which the choice has the wanted entropy, and the sum of the weights there.

    The start is where the two best options alone would have it. Newton's steps from there, bisection where they
    leave the bracket; with a tie at the top the entropy stays above what is wanted at any T, and the lowest T is the
    answer.
    """
    top = second = -np.inf
    for score in scores:
        if score > top:
            top, second = score, top
        elif score > second:
            second = score
    low, high = COLDEST, HOTTEST
    t = min(max(math.log((top - second) / PAIR), low), high) if top > second else low
    while True:
        total, entropy, slope = _weigh(scores, top, math.exp(t), weights)
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
def walk(B, labels, steps, stream):
    """Monte Carlo: the best of all partitions proposed."""
    s = _begin(B, labels)
    live = np.flatnonzero(labels >= 0)
    scores, weights = np.empty(len(labels) + 1), np.empty(len(labels) + 1)
    best, best_q, q = labels.copy(), _q(s), _q(s)
    for _ in range(steps):
        i = live[_below(stream, len(live))]
        options = _scores(s, i, scores)
        now = scores[s.place[s.labels[i]]]
        top = scores[:options].argmax()
        if q + scores[top] - now > best_q + GAIN:
            best_q = q + scores[top] - now
            best[:] = s.labels
            best[i] = s.clusters[top]
        _, total = temper(scores[:options], weights)
        rest = _uniform(stream) * total
        choice = 0
        while choice < options - 1 and rest >= weights[choice]:
            rest -= weights[choice]
            choice += 1
        q += scores[choice] - now
        _move(s, i, s.clusters[choice])
    best = renumbered(best)
    return _q(_begin(B, best)), best


@njit(cache=True)
def _split(B, labels, cluster, refined):
    """The units that leave `cluster`: the negative side of the leading vector; none if Q does not rise."""
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
def bisect(B, live, refined):
    """Spectral bisection: split clusters, first in first out, while Q rises; labels, -1 where not `live`."""
    labels = np.where(live, 0, -1)
    cluster, count = 0, 1
    while cluster < count:
        leaving = _split(B, labels, cluster, refined)
        if len(leaving) > 0:
            labels[leaving] = count
            count += 1
        else:
            cluster += 1
    return renumbered(labels)


@njit(cache=True)
def _settle(s, live):
    """Move single units to their best cluster, an empty one too, until none gains."""
    quiet, at = 0, 0
    while quiet < len(live):
        i = live[at]
        own = s.labels[i]
        top, best = 0.0, s.clusters[s.used[0]]
        for option in range(s.used[0]):
            cluster = s.clusters[option]
            if cluster != own and s.BP[cluster, i] > top:
                top, best = s.BP[cluster, i], cluster
        quiet += 1
        if top > s.BP[own, i] - s.B[i, i] + GAIN:
            _move(s, i, best)
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
def climb(B, labels, stream):
    """Iterated local search: perturb the best partition, climb, keep what is no worse."""
    live = np.flatnonzero(labels >= 0)
    best, best_q = labels.copy(), -np.inf
    s = _begin(B, labels)
    for _ in range(ROUNDS + 1):
        _settle(s, live)
        while _merge(s):
            _settle(s, live)
        q = _q(s)
        if q >= best_q - GAIN:
            best_q = max(q, best_q)
            best = renumbered(s.labels)
        _restart(s, best)
        for _ in range(1 + _below(stream, len(live))):  # up to a restart: small kicks fall back into place
            i = live[_below(stream, len(live))]
            _move(s, i, s.clusters[_below(stream, s.used[0] + 1)])
    return _q(_begin(B, best)), best
