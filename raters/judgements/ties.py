"""Votes of which some are ties: as answers of their own, or as half a vote for each side."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from jaxtyping import Float

from raters.errors import refuse_data
from raters.errors.validation import checked
from raters.judgements.base import Judgements
from raters.judgements.counts import exact


class Ties(Judgements):
    """Votes for one of two sides, as a mixin of `Pairs`: whether a tie is an answer of its own."""

    wins: Any
    tied: bool

    # Of other kinds these two are facts of the class; here they depend on how ties were read.
    @property
    def summed(self) -> bool:  # type: ignore[override]
        """True where a row holds the sum of its votes, as it does unless ties are kept."""
        return not self.tied

    @property
    def success(self) -> tuple[str, float] | None:  # type: ignore[override]
        """The outcome whose probability says all; None where ties are kept."""
        return None if self.tied else ("p_win", 1.0)

    def answers(self) -> Float[np.ndarray, " answer"]:
        """The first item wins, or the second; where ties are kept, a tie is between the two."""
        return np.array([1.0, 0.5, 0.0] if self.tied else [1.0, 0.0])

    def with_ties(self) -> Self:
        """The votes with a tie as an answer of its own, which a model with ``ties`` takes.

        Returns
        -------
        Pairs
            In rows of votes that are alike. It takes rows of single votes (``aggregate=False``), or
            of votes for one side: a sum does not say how many ties are in it.

        Raises
        ------
        DataError
            When a row holds the sum of votes that are not all for one side.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"a": ["tea", "tea"], "b": ["milk", "milk"],
        ...                                    "says": ["tie", "a"]}, first="a", second="b",
        ...                                   outcome="says", ties="half", aggregate=False)
        >>> votes.with_ties().answers().tolist()
        [1.0, 0.5, 0.0]
        """
        if self.tied:
            return self
        if self.wins is None:
            return dataclasses.replace(self, tied=True)
        wins, count = np.asarray(self.wins, float), np.asarray(self.weight, float)
        half = wins % 1 != 0
        if (several := (count > 1) & (wins > 0) & (wins < count)).any():
            row = int(np.flatnonzero(several)[0])
            refuse_data(
                "wins",
                float(wins[row]),
                f"is a sum of {count[row]:g} votes in row {row} (counted from 0), which"
                " does not say how many of them are ties",
                "read the table again with ties='keep'",
            )
        # Votes for the first item, ties, and votes for the second, each as a row of its own.
        decided = np.where(half, 0, wins), np.where(half, 0, count - wins)
        numbers = np.stack([decided[0], half.astype(float), decided[1]])
        place, rows = np.nonzero(numbers > 0)
        order = np.argsort(rows, kind="stable")
        place, rows = place[order], rows[order]
        outcome = np.array([1.0, 0.5, 0.0], np.float32)[place]
        kept = dataclasses.replace(self.rows(rows), wins=outcome, tied=True)
        return dataclasses.replace(kept, count=exact(numbers[place, rows]))._slim()

    def halved(self) -> Self:
        """The votes with half of each tie for either side, as read with ``ties="half"``.

        Returns
        -------
        Pairs
            In the same rows; as they are unless ties are kept.

        Examples
        --------
        >>> import raters as rt
        >>> votes = rt.Comparisons.from_frame({"a": ["tea"], "b": ["milk"], "says": ["tie"],
        ...                                    "times": [3]}, first="a", second="b",
        ...                                   outcome="says", count="times", ties="keep")
        >>> votes.wins.tolist(), votes.halved().wins.tolist()
        ([0.5], [1.5])
        """
        if not self.tied:
            return self
        if self.wins is None:
            return dataclasses.replace(self, tied=False)
        count = np.asarray(self.weight, float)
        votes = dataclasses.replace(self, wins=exact(np.asarray(self.wins) * count), tied=False)
        return dataclasses.replace(votes, count=exact(count))._slim()

    @checked
    def joined(self, more: Self) -> Self:
        """These votes and further ones, in this order, with ties as these have them; see
        `Judgements.joined`."""
        return super().joined(more.with_ties() if self.tied else more.halved())

    @checked
    def recoded(self, like: Self, axes: Iterable[str]) -> Self:
        """In the codes of `like` along the given axes, with a tie as an answer where it is one of
        `like`; see `Judgements.recoded`."""
        votes = super().recoded(like, axes)
        return votes.with_ties() if like.tied else votes.halved()
