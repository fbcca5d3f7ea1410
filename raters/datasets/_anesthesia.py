"""Ratings of anaesthesia risk by Dawid and Skene (1979), Table 1."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from raters.errors.validation import one_of
from raters.judgements.answers import Ratings
from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels


def anesthesia(kind: str = "table") -> Any:
    """Load the ratings of 45 patients by five anaesthetists, from 1 (fit) to 4 (a grave risk).

    Observer 1 rated each patient three times, the others once: seven ratings of each patient.

    Parameters
    ----------
    kind : {"table", "ratings", "votes", "labels"}
        The 315 rows; or ratings by seven raters; or their votes, of which of two patients has the
        worse risk, with half a vote for each where ratings are equal (the 990 votes of a rater come
        from 45 ratings, and are not independent); or labels by the five observers.

    Returns
    -------
    pandas.DataFrame, Ratings, Comparisons or Labels
        The table has the columns ``patient``, ``rater`` (one of the seven ratings), ``observer``,
        ``occasion`` and ``rating``.

    References
    ----------
    Dawid, A. P. and Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates
    using the EM algorithm. Applied Statistics 28, 20–28, Table 1.

    Examples
    --------
    >>> import raters as rt
    >>> rt.datasets.anesthesia().shape
    (315, 5)
    >>> labels = rt.datasets.anesthesia("labels")
    >>> labels.num_items, labels.num_annotators, labels.num_labels
    (45, 5, 315)
    """
    one_of("kind", kind, ("table", "ratings", "votes", "labels"))
    table = pd.read_csv(Path(str(files("raters.datasets") / "anesthesia.csv")))
    if kind == "ratings":
        return Ratings.from_frame(table, item="patient", rating="rating", annotator="rater")
    if kind == "votes":
        return Comparisons.from_ratings(table, item="patient", rating="rating", annotator="rater")
    if kind == "labels":
        return Labels.from_frame(table, item="patient", annotator="observer", label="rating")
    return table
