"""References for what was used."""

from __future__ import annotations

import pytest

import raters as rt


@pytest.mark.parametrize("thing", [rt.BTL(), rt.ExtendedBTL(), rt.PGGibbs(), rt.PGEM(), rt.NUTS(), rt.SVI()], ids=repr)
def test_everything_has_a_reference(thing):
    text = rt.cite(thing)
    assert text.startswith(f"{type(thing).__name__}: ")
    assert len(text) > 60


def test_one_paragraph_each_in_the_order_asked():
    paragraphs = rt.cite(rt.PGGibbs(), rt.BTL()).split("\n\n")
    assert [paragraph.split(":")[0] for paragraph in paragraphs] == ["PGGibbs", "BTL"]
    assert "Polson" in paragraphs[0]
    assert "Bradley" in paragraphs[1]
