"""Length of chains."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

import raters as rt
from raters.inference import chains
from raters.inference.base import progress_bar


def counting():
    """A chain whose values are the numbers of its steps."""
    numbers = count()

    def chain(steps):
        drawn = np.array([next(numbers) for _ in range(steps)])
        return {"site": drawn}, {"even": drawn % 2 == 0}

    return chain


@pytest.mark.parametrize(
    ("needed", "kept"),
    [
        ((1,), np.arange(10)),
        ((3, 1), np.arange(13)),
        ((3,) * 8, np.r_[:40:3, 40:118:3]),
        ((2,) * 9, np.arange(0, 160, 4)),
        ((9,) * 7, np.arange(40)),
    ],
)
def test_chains_end_as_soon_as_they_have_mixed_or_go_on(tiny, monkeypatch, needed, kept):
    """Of 40 draws: after a quarter, then a quarter more, one in three or four of all steps."""
    asked = iter(needed)
    monkeypatch.setattr(chains, "times_longer", lambda *_: next(asked))
    monkeypatch.setattr(chains, "identified", lambda _, draws: draws)
    bar, program = progress_bar(0, "", False), rt.program.Program(rt.BTL(), tiny)
    both = [counting(), counting()]
    values, stats, times = chains.sampled(both, 40, bar, longest=4, batch=7, program=program)
    np.testing.assert_array_equal(values["site"], [kept] * 2)
    np.testing.assert_array_equal(stats["even"], values["site"] % 2 == 0)
    assert times == kept[1]
