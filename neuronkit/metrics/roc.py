"""The area under the ROC curve of many scores at once."""

import numpy as np
import scipy.stats

from neuronkit import InputError


def auc(scores, labels) -> np.ndarray:
    """(...,) of scores (..., n) for binary labels (n,): how often an item of class 1 scores above one of class 0.

    Ties count half. Raises InputError where a class has no item.
    """
    labels = np.asarray(labels) == 1
    ones = labels.sum()
    if ones in (0, len(labels)):
        raise InputError("all items are of one class: an AUC needs both.")
    ranks = scipy.stats.rankdata(scores, axis=-1)[..., labels]
    return (ranks.sum(-1) - ones * (ones + 1) / 2) / (ones * (len(labels) - ones))
