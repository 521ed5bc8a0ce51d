"""Words without order: TF-IDF and logistic regression, what a unit of a language model has to be compared with."""

import numpy as np


def tfidf(texts: list[str], labels, others: list[str]) -> dict:
    """{"labels": (n,)} that a logistic regression on TF-IDF, fitted on texts and labels, gives the other texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=10, max_iter=1000)
    )
    return {"labels": model.fit(texts, np.asarray(labels)).predict(others)}


def regression(train, labels, others) -> dict:
    """{"labels": (n,)} that a logistic regression on standardised numbers (m, k), labels (m,), gives others (n, k)."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4, max_iter=1000))
    return {"labels": model.fit(np.asarray(train), np.asarray(labels)).predict(np.asarray(others))}
