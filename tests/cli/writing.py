"""Every command that writes, in a folder where fits, figures and choices take no time."""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import raters as rt
from raters.acquisition.campaign import campaign as campaigns
from raters.acquisition.campaign.journal import Journal
from raters.cli import app, audit, check, joint, outputs, types
from raters.fitting.result import as_tree
from raters.fitting.storage import to_json
from raters.inference.base import Draws
from raters.kinds import AuditContext
from raters.program import Program

VOTES = "winner,loser,annotator\n" + "a,b,ann\nb,c,bob\na,c,ann\nc,a,bob\n" * 3


# ---------------------------------------------------------------- commands that compute nothing


class Command(NamedTuple):
    """Words of a command in the folder of `place`, and the files that it writes."""

    words: str
    writes: tuple[str, ...] = ()
    journal: str | None = None


COMMANDS = {
    "fit": Command("fit votes.csv --out fit.nc", ("fit.nc",)),
    "audit": Command(
        "audit votes.csv --out out --report page.html",
        ("out/result.nc", "out/competences.png", "out/summary.json", "page.html"),
    ),
    "types": Command(
        "types votes.csv --out out",
        tuple(
            f"out/{name}"
            for name in (
                *("result.nc", "types.csv", "annotators.csv", "profiles.png"),
                *("responsibilities.png", "summary.json"),
            )
        ),
    ),
    "check": Command(
        "check votes.csv --out out",
        tuple(
            f"out/{name}"
            for name in (
                *("result.nc", "checks.csv", "checks.png", "dependence.csv", "dependence.png"),
                "summary.json",
            )
        ),
    ),
    "joint": Command(
        "joint --part one=votes.csv --part two=votes.csv --out out",
        tuple(
            f"out/{name}"
            for name in ("result.nc", "one.nc", "two.nc", "annotators.csv", "summary.json")
        ),
    ),
    "suggest": Command("suggest result.nc --out next.csv", ("next.csv",)),
    "simulate": Command("simulate --votes 50 --out drawn.csv", ("drawn.csv", "drawn-truth.json")),
    "start": Command(
        "campaign start --items a,b,c --annotators ann,bob --target random --out new.db",
        journal="new.db",
    ),
    "ask": Command("campaign ask c.db --number 2 --out ask.csv", ("ask.csv",), "c.db"),
    "ask on screen": Command("campaign ask c.db --number 2 --budget 9", (), "c.db"),
    "consider": Command(
        "campaign consider c.db arriving.csv --rate 0.999 --out taken.csv", ("taken.csv",), "c.db"
    ),
    "tell": Command("campaign tell c.db filled.csv", (), "c.db"),
    "withdraw": Command("campaign withdraw c.db --annotator ann --annotator bob", (), "c.db"),
    "import": Command("campaign import c.db done.json --from label-studio", (), "c.db"),
    "judgements": Command(
        "campaign export c.db --to judgements --out all.parquet", ("all.parquet",), "c.db"
    ),
    "csv": Command("campaign export c.db --to csv --out open.tsv", ("open.tsv",), "c.db"),
    "label-studio": Command(
        "campaign export c.db --to label-studio --out t.json", ("t.json", "t-config.xml"), "c.db"
    ),
    "argilla": Command(
        "campaign export c.db --to argilla --out r.json", ("r.json", "r-settings.json"), "c.db"
    ),
}


def make_template(folder: Path) -> None:
    """Write what the commands read."""
    (folder / "votes.csv").write_text(VOTES)
    (folder / "mine.txt").write_text("mine")
    outputs.to_netcdf(result(), folder / "result.nc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaigns, "check_possible", lambda *_: None)
        pool = rt.Candidates.pairs(items=["a", "b", "c", "d"], annotators=["ann", "bob"])
        policy = rt.Policy(score=rt.acquisition.Random())
        campaign = rt.Campaign(folder / "c.db", rt.BTL(), pool, policy=policy)
    ids = campaign.ask(4)["id"].values.tolist()
    campaign.tell(ids[0], "first")
    pd.DataFrame({"id": ids[1:3], "answer": "first"}).to_csv(folder / "filled.csv", index=False)
    # What is answered may be asked again.
    arriving = campaign.asked.to_dataframe().iloc[[0]][["first", "second", "by"]]
    arriving.to_csv(folder / "arriving.csv", index=False)
    left = {"type": "pairwise", "value": {"selected": "left"}}
    tasks = [
        {"data": {"question_id": one}, "annotations": [{"completed_by": 1, "result": [left]}]}
        for one in ids[1:3]
    ]
    (folder / "done.json").write_text(json.dumps(tasks))


def result() -> Any:
    """A result with draws that are all zero."""
    table = {"winner": [*"abac"], "loser": [*"bcca"], "annotator": [*"xyxy"]}
    votes = rt.Comparisons.from_frame(table, winner="winner", loser="loser", annotator="annotator")
    program = Program(rt.BTL(), votes)
    values = {name: np.zeros((1, 4, *site.shape)) for name, site in program.sites.items()}
    facts = {"model": to_json(rt.BTL()), "backend": to_json(rt.PGEM()), "seconds": 0.1}
    return as_tree(program, Draws(values, {}), facts)


def nothing_fails() -> rt.checking.Check:
    """A check of one discrepancy, which does not fail."""
    columns = ("observed", "replicated", "replicated_low", "replicated_high", "p_value")
    values = {name: ("discrepancy", [0.5]) for name in (*columns, "p_adjusted")}
    coords = {"discrepancy": ["agreement"], "title": ("discrepancy", ["agreement"])}
    table = xr.Dataset(values | {"fails": ("discrepancy", [False])}, coords)
    draws = xr.Dataset({"observed": (("discrepancy", "draw"), [[0.5]])}, coords)
    return rt.checking.Check(table, draws, ())


def nothing_shared() -> rt.checking.Dependence:
    """Two judges who err apart."""
    axes, names = ("annotator", "other"), ["ann", "bob"]
    table = xr.Dataset(
        {
            name: (axes, np.zeros((2, 2)))
            for name in ("correlation", "correlation_low", "correlation_high")
        }
        | {"questions": (axes, np.full((2, 2), 20))},
        dict.fromkeys(axes, names),
    )
    return rt.checking.Dependence(
        table, 0.0, (0.0, 0.0), 2.0, (2.0, 2.0), 2, "annotator", 0, True, 0.9
    )


def everybody_stays() -> rt.auditing.Audit:
    """Two judges who are kept."""
    columns = {"judgements": [9, 9], "p_above": [1.0, 1.0], "p_below": [0.0, 0.0]}
    table = {name: ("annotator", one) for name, one in columns.items()}
    table |= {f"one.competence{end}": ("annotator", [1.0, 1.0]) for end in ("", "_low", "_high")}
    table["verdict"] = ("annotator", ["keep", "keep"])
    names = {"annotator": ["ann", "bob"]}
    return rt.auditing.Audit(xr.Dataset(table, names), "A rule.", judged="p_above")


def compute_nothing(patch: pytest.MonkeyPatch, picture: bytes = b"a picture") -> None:
    """Let fits, figures and choices take no time."""
    fitted = result()

    def draw(path: Path) -> None:
        path.write_bytes(picture)

    def audited(request: Any, program: Any, *_: Any) -> AuditContext:
        return AuditContext(program, fitted, None, 0.9)

    patch.setattr(rt, "fit", lambda *_, **__: fitted)
    both = rt.models.JointModel({"one": rt.BTL(), "two": rt.BTL()}, shared=["reward"])
    parts = dict.fromkeys(both.parts, fitted)
    patch.setattr(joint, "_fitted", lambda *_: joint.Fitted(both, fitted, parts, everybody_stays()))
    patch.setattr(campaigns, "check_possible", lambda *_: None)
    patch.setattr(app, "command_line", lambda words: _command_line(words[0]))
    patch.setattr(audit, "_audited", audited)
    patch.setattr(audit, "_findings", lambda _, own: audit.Findings(own, (), pd.DataFrame(), ""))
    patch.setattr(audit, "_check_judged", lambda *_: None)
    patch.setattr(audit, "_figures", lambda _: {"competences.png": draw})
    patch.setattr(audit, "_reports", lambda *_: {Path("page.html"): "a page"})
    table = pd.DataFrame({"first": ["a"], "second": ["b"], "by": ["x"], "score": [0.5]})
    patch.setattr(audit, "questions", lambda *_, **__: table)
    patch.setattr(audit.page, "print_questions", lambda *_: print("questions"))
    patch.setattr(types, "item_table", lambda *_: table)
    patch.setattr(types, "annotator_table", lambda *_: table.assign(probability=1.0))
    patch.setattr(types, "_types", lambda *_: [])
    patch.setattr(types, "_print", lambda *_: print("types"))
    figure = SimpleNamespace(savefig=draw)
    patch.setattr(rt, "check", lambda *_, **__: nothing_fails())
    patch.setattr(rt, "dependence", lambda *_, **__: nothing_shared())
    for name in ("checks", "dependence"):
        patch.setattr(check.figures, name, lambda *_, figure=figure: figure)
    for name in ("profiles", "responsibilities"):
        patch.setattr(types.type_figures, name, lambda *_, figure=figure, **__: figure)


_build = app.command_line


@functools.cache
def _command_line(name: str) -> Any:
    """The options of a command, which are the same each time."""
    return _build([name])


def renew(folder: Path, template: Path) -> None:
    """Make the folder as it was, and that of temporary files beside it empty."""
    for parent in (folder, folder.with_name("temporary")):
        parent.mkdir(exist_ok=True)
        for path in parent.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(template, folder, dirs_exist_ok=True)


class State(NamedTuple):
    """Files of the folder, and what the journal of the command says."""

    files: dict[str, bytes]
    journal: Any

    @classmethod
    def of(cls, folder: Path, journal: str | None) -> State:
        files = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name not in (outputs.MANIFEST, journal, f"{journal}-journal")
        }
        return cls(files, None if journal is None else _said_by(folder / journal))


def _said_by(journal: Path) -> Any:
    """Questions and answers of a journal, without times; None where there is none."""
    if not journal.exists():
        return None
    stored = Journal(journal).read()
    columns = (stored.row, stored.annotator, stored.batch, stored.withdrawn)
    value = np.nan_to_num(stored.value, nan=-1.0).tolist()
    return [column.tolist() for column in columns], value
