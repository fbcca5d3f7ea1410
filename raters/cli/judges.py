"""The command ``raters judges``: a board of judges."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from functools import partial

import pandas as pd

import raters as rt
from raters.cli import files
from raters.cli.commands import write_board
from raters.cli.files import collected_warnings, note
from raters.cli.reading import pairs, task_of, value_of
from raters.errors import refuse
from raters.errors.validation import share
from raters.judgements.names import name_text, shorten
from raters.judgements.reading.files import names_in, read_table, table_format
from raters.reporting.judges.judges import people_and_prices
from raters.reporting.report import FORMS


def judges(given: Namespace) -> None:
    """Fit, compare the judges, and print their board, or the card of one."""
    for path in given.out:
        if path.suffix not in FORMS:
            table_format(path, written=True)
        files.check_writable(path, given)
    lengths = tuple(names_in(given.lengths)) if given.lengths else None
    if lengths is not None and len(lengths) != 2:
        refuse("lengths", given.lengths, "are not two columns", "write --lengths len_a,len_b")
    named = [*(lengths or ()), given.question, given.swapped, given.time]
    columns = [name for name in named if name]
    if given.file.suffix != ".nc" and columns:
        others = given.roles.get("columns", [])
        given.roles["columns"] = [*others, *(one for one in columns if one not in others)]
    cost = {name: value_of(text, float) for name, text in pairs(given.cost, "cost").items()}
    with collected_warnings():
        task, _ = task_of(given)
        if task.kind.name not in ("labels", "comparisons"):
            problem = f"is of {task.kind.words.many}, and judges are compared by labels or votes"
            refuse("table", str(given.file), problem, "raters audit says whom to trust")
        # What needs no fit is refused before it.
        people = names_in(given.people) if given.people else ()
        _, others, _ = people_and_prices(task.program.data, people, cost)
        judged = [name_text(task.program.data.judges[code]) for code in others]
        if given.card is not None and name_text(given.card) not in judged:
            expected = f"name one of {shorten(judged)}"
            refuse("card", given.card, "is no judge of this board", expected)
        share("target", given.target)
        tables = [read_table(path) for path in given.gold]
        gold = pd.concat(tables, ignore_index=True) if tables else task.gold
        options = {name: getattr(given, name) for name in ("target", "level", "seed")}
        options |= {name: getattr(given, name) or "" for name in ("question", "swapped", "time")}
        options |= {"lengths": lengths, "cost": cost or None, "gold": gold, "people": people}
        board = rt.judges(task.fit(log_likelihood=False), **options)
    board = replace(board, facts={**board.facts, "front": "command line"})
    shown = board if given.card is None else board.card(given.card)
    for path in given.out:
        files.write_file(path, partial(write_board, shown), given.force)
        note(f"wrote {path}", given.quiet)
    print(shown)
