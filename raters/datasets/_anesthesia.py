"""Ratings of anaesthesia risk by Dawid and Skene (1979), Table 1."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np
from jaxtyping import Shaped

from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels
from raters.judgements.ratings import Ratings


def anesthesia_path() -> Path:
    """Return the path of the packaged table, for the command line."""
    return Path(str(files("raters.datasets") / "anesthesia.csv"))


def anesthesia() -> dict[str, Shaped[np.ndarray, " rating"]]:
    """Load the ratings of 45 patients by five anaesthetists, from 1 (fit) to 4 (a grave risk).

    Observer 1 rated each patient three times, the others once: seven ratings of each patient.

    Returns
    -------
    dict of arrays
        ``patient``, ``rater`` (one of the seven ratings), ``observer``, ``occasion`` and
        ``rating``, each of shape (315,).

    References
    ----------
    Dawid, A. P. and Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates
    using the EM algorithm. Applied Statistics 28, 20–28, Table 1.

    Examples
    --------
    >>> import raters as rt
    >>> table = rt.datasets.anesthesia()
    >>> len(table["rating"]), int(table["rating"].max())
    (315, 4)
    """
    with anesthesia_path().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table = {"rater": np.array([row["rater"] for row in rows], dtype=object)}
    for column in ("patient", "observer", "occasion", "rating"):
        table[column] = np.array([int(row[column]) for row in rows])
    return table


def anesthesia_ratings() -> Ratings:
    """Load the ratings of 45 patients, seven of each.

    Returns
    -------
    Ratings
        With 45 items, 7 annotators and 4 levels; higher is a worse risk.

    Examples
    --------
    >>> import raters as rt
    >>> ratings = rt.datasets.anesthesia_ratings()
    >>> ratings.num_items, ratings.num_annotators, ratings.levels
    (45, 7, (1, 2, 3, 4))
    """
    return Ratings.from_frame(anesthesia(), item="patient", rating="rating", annotator="rater")


def anesthesia_votes() -> Comparisons:
    """Load the same ratings as comparisons of patients.

    Of two patients that one rater rated, the one with the worse risk wins; equal ratings are ties,
    half a vote for each. The 990 votes of a rater come from 45 ratings, and are not independent:
    `anesthesia_ratings` has the ratings as they are.

    Returns
    -------
    Comparisons
        With 45 items and 7 annotators.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.datasets.anesthesia_votes()
    >>> votes.num_items, votes.num_annotators
    (45, 7)
    """
    return Comparisons.from_ratings(
        anesthesia(), item="patient", rating="rating", annotator="rater"
    )


def anesthesia_labels() -> Labels:
    """Load the same ratings as labels by five observers, three of each patient by the first.

    Returns
    -------
    Labels
        With 45 items, 5 annotators and 4 classes.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia_labels()
    >>> labels.num_items, labels.num_annotators, labels.num_labels
    (45, 5, 315)
    """
    return Labels.from_frame(anesthesia(), item="patient", annotator="observer", label="rating")
