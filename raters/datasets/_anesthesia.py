"""Dawid and Skene (1979), Table 1."""

from __future__ import annotations

import csv
from importlib.resources import files
from pathlib import Path

import numpy as np

from raters.data import Comparisons
from raters.labels import Labels


def anesthesia_path() -> Path:
    """Where the packaged table lies, for the command line."""
    return Path(str(files("raters.datasets") / "anesthesia.csv"))


def anesthesia() -> dict[str, np.ndarray]:
    """Fitness for anaesthesia of 45 patients, rated 1 (fit) to 4 (a grave risk) by five anaesthetists.

    Observer 1 rated everyone three times, the others once: seven ratings of each patient.

    Returns
    -------
    dict of arrays
        ``patient``, ``rater`` (one of the seven ratings), ``observer``, ``occasion`` and ``rating``, each of shape (315,).

    References
    ----------
    Dawid, A. P. and Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates using the EM algorithm.
    Applied Statistics 28, 20–28, Table 1.

    Examples
    --------
    >>> import raters as rt
    >>> table = rt.datasets.anesthesia()
    >>> len(table["rating"]), int(table["rating"].max())
    (315, 4)
    """
    with anesthesia_path().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    table: dict[str, np.ndarray] = {"rater": np.array([row["rater"] for row in rows], dtype=object)}
    for column in ("patient", "observer", "occasion", "rating"):
        table[column] = np.array([int(row[column]) for row in rows])
    return table


def anesthesia_votes() -> Comparisons:
    """The same table as comparisons: of two patients, the one rated the worse risk wins; equal ratings give half a vote each.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.datasets.anesthesia_votes()
    >>> votes.num_items, votes.num_annotators
    (45, 7)
    """
    return Comparisons.from_ratings(anesthesia(), item="patient", rating="rating", annotator="rater")


def anesthesia_labels() -> Labels:
    """The same table as labels: five observers, the first of whom classed every patient three times.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia_labels()
    >>> labels.num_items, labels.num_annotators, labels.num_labels
    (45, 5, 315)
    """
    return Labels.from_frame(anesthesia(), item="patient", annotator="observer", label="rating")
