"""Names and text for people: short, on one line, and with nothing in them that cannot be seen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raters.judgements.display import SHORT, WHOLE, display_name, visible


def hidden(text: str) -> bool:
    """True if text has what steers a terminal or turns the direction of what follows."""
    kinds = {unicodedata.category(letter) for letter in text.replace("\u200d", "")}
    return bool(kinds & {"Cc", "Cf", "Zl", "Zp", "Cs"})


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("ann", "ann"),
        (7, "7"),
        ("", "(empty)"),
        (" ann  ", "␣ann␣␣"),
        ("   ", "␣␣␣"),
        ("a\u00a0", "a[U+00A0]"),
        ("a\u00a0b", "a\u00a0b"),
        ("one\ntwo\r\nthree\t", "one↵two↵three⇥"),
        ("\u200b", "[U+200B]"),
        ("\u3164", "[U+3164]"),
        ("\ufe0f", "[U+FE0F]"),
        ("ann\u200b", "ann[U+200B]"),
        ("a\u200db", "a[U+200D]b"),
        ("\u202egpj.exe", "[U+202E]gpj.exe"),
        ("\x1b[31mred", "[U+001B][31mred"),
        ("👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3", "👩\u200d👧 ❤\ufe0f 1\ufe0f\u20e3"),
        ("نام\u200cها", "نام\u200cها"),
        ("\u0301\u0301", "[U+0301][U+0301]"),
        ("\u20dd", "[U+20DD]"),
        ("a\n\u0301\u200b\u0301", "a↵[U+0301][U+200B][U+0301]"),
        ("e" + 6 * "\u0301", "e" + 4 * "\u0301" + 2 * "[U+0301]"),
    ],
)
def test_what_cannot_be_seen_is_shown(name, shown):
    assert display_name(name) == shown


def test_a_long_name_is_cut_in_the_middle():
    name = "a" * 60 + "b" * 9_880 + "c" * 60
    assert display_name(name) == "a" * 52 + "…" + "c" * 27
    assert len(display_name(name, WHOLE)) == WHOLE
    assert display_name("a" * SHORT) == "a" * SHORT
    # A code point is written whole or not at all, and an accent does not move to the ellipsis.
    assert display_name("\u200b" * 50, 20) == "[U+200B]…[U+200B]"
    assert display_name("x" * 50 + "e\u0301", 4) == "xx…"


@given(st.text(), st.integers(8, 40))
def test_any_name_is_short_and_harmless(name, most):
    shown = display_name(name, most)
    assert 0 < len(shown) <= most
    assert not hidden(shown)
    assert not shown.isspace()
    assert not hidden(visible(name).replace("\n", "").replace("\t", "").replace("\r", ""))
