"""The terminal: names and messages of any kind do not steer it."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings

from rich.table import Table

import raters as rt
from raters.cli import app, console, page
from raters.cli.fitting import collected_warnings
from raters.cli.options import note
from raters.errors import DataWarning
from raters.kinds import Column, Section, kind_of
from raters.kinds import Table as SectionTable
from raters.reporting.page import columns, judges
from tests.cli.test_app import run
from tests.reporting.test_names import mirrored
from tests.reporting.test_report import judged

NAMES = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "new\nline",
    "tab\there",
    "\u202egpj.exe",
    "[bold]not[/bold]",
    "z" * 10_000,
    "\u200b",
)
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2028]")


def printed(write) -> str:
    """Text printed on a wide terminal."""
    out = console.Output(file=io.StringIO(), width=200)
    write(out)
    return out.file.getvalue()


def test_names_in_the_table_of_judges():
    _, result, audit = judged([*NAMES, "new"])
    kind = kind_of(judged(["guess", "good", "new"])[0].data_type.from_result(result))
    rows, shown = judges(audit, kind), columns(audit, kind)
    words = (kind.words.many, kind.lowest)
    text = printed(lambda out: page.print_judges(out, audit, rows, shown, words, 20))
    assert not STEERING.search(text)
    for name in ("[U+001B][31mred", "new↵line", "[U+202E]gpj.exe", "[bold]not[/bold]", "[U+200B]"):
        assert name in text
    assert text.count("z") < 100


def test_both_worlds_are_printed():
    model, result, audit = mirrored(0.3)
    kind = kind_of(model.data_type.from_result(result))
    rows, shown = judges(audit, kind), columns(audit, kind)
    words = (kind.words.many, kind.lowest)
    text = printed(lambda out: page.print_judges(out, audit, rows, shown, words, 20))
    first, other = next(row["worlds"] for row in rows if row["annotator"] == "ann")
    line = next(place for place, line in enumerate(text.splitlines()) if line.startswith("ann "))
    own, mirror = text.splitlines()[line : line + 2]
    for said, world in ((own, first), (mirror, other)):
        assert f" {world['competence']:.2f} " in said
        assert f"{world['competence_low']:.2f}…{world['competence_high']:.2f}" in said
    assert "the first one given holds with probability 70%" in text


def test_small_scores_of_questions_keep_their_digits():
    """A score that three decimals would print as 0 has two digits; 0 is 0."""
    model, result, _ = mirrored(0.3)
    votes = model.data_type.from_result(result)
    pool = rt.Candidates.pairs(votes)
    table = (
        rt.suggest(model, result, pool, batch_size=3)
        .to_dataframe()
        .assign(score=[0.25, 0.00012, 0.0])
    )
    text = printed(lambda out: page.print_questions(out, votes, table, ""))
    assert all(text.count(score) == 1 for score in ("0.250", "1.2e-04", "0.000"))


def test_names_and_sentences_of_a_section():
    rows = [{"item": name, "rank": 1, "rank_low": 1, "rank_high": 3} for name in NAMES]
    shown = (Column("rank", "rank", "range"), Column("item", "item", "name"))
    section = Section(
        "s", "S", f"First is {NAMES[0]}.", tables=(SectionTable("t", "T", shown, rows),)
    )
    text = printed(lambda out: page.print_section(out, section, 0.9, 20))
    assert not STEERING.search(text)
    assert "First is [U+001B][31mred[U+001B][0m." in text
    assert "1 (1–3)" in text
    assert text.index("First is") < text.index("1 (1–3)")


def test_tables_keep_their_own_colours():
    grid = Table()
    grid.add_row("[bold red]drop[/]")
    out = console.Output(file=io.StringIO(), force_terminal=True, color_system="standard")
    out.print(grid)
    assert "\x1b[1;31mdrop" in out.file.getvalue()


def test_messages_are_one_line_each(capsys):
    with collected_warnings() as seen:
        warnings.warn(f"a warning about {NAMES[0]}", DataWarning, stacklevel=1)
    note(f"about {NAMES[1]} and {NAMES[2]}", quiet=False)
    app._stop(f"an error about {NAMES[4]}", 2)
    text = capsys.readouterr().err
    assert not STEERING.search(text)
    assert text.count("\n") == 3
    assert seen == ["a warning about [U+001B][31mred[U+001B][0m"]


def test_a_campaign_about_such_names(tmp_path, capsys, monkeypatch):
    table, journal = tmp_path / "votes.csv", tmp_path / "campaign.db"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("winner", "loser", "worker"), *((name, "b", NAMES[0]) for name in NAMES)]
        )
    options = ("--target", "random", "--quiet", "--out", journal)
    code, _, err = run(capsys, "campaign", "start", table, *options)
    assert code == 0, err
    code, asked, err = run(capsys, "campaign", "ask", journal, "--number", 3)
    assert (code, err.count("\n")) == (0, 1)
    prompts: list[str] = []

    def typed(prompt: str) -> str:
        prompts.append(prompt)
        return "q"

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    code, told, err = run(capsys, "campaign", "tell", journal)
    assert code == 0, err
    code, stands, err = run(capsys, "campaign", "status", journal, "--quick")
    assert code == 0, err
    assert prompts
    for text in (asked, stands, told, *prompts):
        assert not STEERING.search(text)
