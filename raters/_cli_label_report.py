"""What the command line prints of labels: items, annotators, agreement, next questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.markup import escape

from raters._cli_report import NARROW, STYLES, fill, new_grid, print_verdicts
from raters._facts import STATISTICS, audit_frame, items_frame, percent, span

if TYPE_CHECKING:
    import xarray as xr

    from raters.audit import Audit

# From so many columns of text on, the audit says which class an annotator says too often.
_WIDE = 96


def print_items(out: Console, items: xr.Dataset, known: int, most: int) -> None:
    """Item labels from the least certain to the most, shortened mostly at the certain end; then what stopping now costs."""
    table = new_grid("Items, least certain label first")
    table.add_column("item", overflow="fold", min_width=14)
    table.add_column("label", overflow="fold", min_width=6)
    for heading in ("probability", "entropy, bits", "labels"):
        table.add_column(heading, justify="right", no_wrap=True)

    def cells(row):
        names = (escape(str(row.item)), escape(str(row.label)))
        return *names, percent(row.probability), f"{row.entropy:.2f}", str(row.votes)

    fill(table, items_frame(items), most, cells, column=0, head=max(most - 3, 1))
    out.print(table)
    out.print()
    number, wrong = items.sizes["item"], float((1 - items["probability"]).sum())
    share, given = f"{wrong / number:.1%}", f" The truth of {known:,} was given." if known else ""
    text = f"If labelling stops now, {wrong:.1f} of {number:,} item labels are expected to be wrong ({share}), by this model."
    out.print(text + given, highlight=False)
    out.print()


def print_audit(out: Console, found: Audit, level: float, threshold: float, most: int) -> None:
    """Annotators from the least trusted to the most, then the rule and what dropping the flagged would cost."""
    frame = audit_frame(found)
    table = new_grid("Annotators, least trusted first (spammer … below: probabilities)")
    wide, widest = out.width >= NARROW, out.width >= _WIDE
    table.add_column("annotator", overflow="fold", min_width=12)
    table.add_column("labels", justify="right", no_wrap=True)
    table.add_column("compe-\ntence", justify="right", no_wrap=True)
    table.add_column(f"{level:.0%}\ninterval", justify="right", no_wrap=True)
    if wide:
        table.add_column("accu-\nracy", justify="right", no_wrap=True)
    for heading in ("bits per\nlabel", "spam-\nmer", "adver-\nsarial", f"below\n{threshold:g}"):
        table.add_column(heading, justify="right", no_wrap=True)
    if widest:
        table.add_column("says too\noften", overflow="ellipsis", max_width=9, no_wrap=True)
    table.add_column("verdict", min_width=7)

    def cells(row):
        name, votes = escape(str(row.annotator)), str(row.votes)
        chances = (percent(share) for share in (row.p_spammer, row.p_adversarial, row.p_below))
        front = (name, votes, f"{row.competence:.2f}", span(row.competence_low, row.competence_high))
        middle = (percent(row.accuracy),) if wide else ()
        bias = (escape(str(row.bias_class)) if row.bias >= 0.1 else "",) if widest else ()
        return *front, *middle, f"{row.information:.2f}", *chances, *bias, f"[{STYLES[row.verdict]}]{row.verdict}[/]"

    dropped = int((frame["verdict"] == "drop").sum())
    fill(table, frame, most, cells, column=0, head=max((most + 1) // 2, min(dropped, most - 1)))
    out.print(table)
    out.print()
    print_verdicts(out, found, "" if widest else " A wider terminal also shows bias.")


def print_agreement(out: Console, agreement: pd.DataFrame | None, silence: str, level: float) -> None:
    """Agreement without a model, one row for each statistic."""
    if agreement is None:
        out.print(silence + "\n", highlight=False)
        return
    table = new_grid("Agreement between annotators")
    table.add_column("statistic")
    table.add_column("estimate", justify="right")
    table.add_column(f"{level:.0%} interval", justify="right")
    for row in agreement.itertuples():
        table.add_row(STATISTICS[row.Index], f"{row.estimate:.2f}", span(row.low, row.high))
    out.print(table)
    items, left_out = int(agreement["items"].iloc[0]), int(agreement["items_left_out"].iloc[0])
    if left_out:
        out.print(f"From {items:,} items; {left_out:,} have labels by fewer than two annotators.", highlight=False)
    out.print()


def print_questions(out: Console, questions: pd.DataFrame, note: str) -> None:
    """The most informative labels to ask for."""
    if len(questions):
        table = new_grid("Next labels to ask for, in the order in which they were chosen")
        for heading in ("item", "ask"):
            table.add_column(heading, overflow="fold", min_width=6)
        table.add_column("score", justify="right", no_wrap=True)
        table.add_column("likely answer", overflow="fold")
        table.add_column("P(answer)", justify="right", no_wrap=True)
        for row in questions.itertuples():
            names = (escape(str(row.item)), escape(str(row.by)))
            table.add_row(*names, f"{row.score:.3f}", escape(str(row.label)), percent(row.p_label))
        out.print(table)
    if note:
        if len(questions):
            out.print()
        out.print(note, highlight=False)


def print_change(out: Console, change: Mapping[str, Any], items: int, flagged: int, most: int = 8) -> None:
    """What leaving out the flagged annotators does to the item labels."""
    out.print(
        f"Without the {flagged} flagged annotator(s): {change['changed']} of {items:,} item labels change; "
        f"{change['expected_wrong']:.1f} are expected to be wrong.",
        highlight=False,
    )
    moves = [escape(f"{move['item']} ({move['label']} → {move['new_label']})") for move in change["items"][:most]]
    if moves:
        out.print("Such as " + ", ".join(moves), highlight=False)
    out.print()
