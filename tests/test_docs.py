"""Every Python snippet of the pages runs, in the order of its page; command lines that begin with ``raters`` are read by the
program, and under the mark ``thorough`` run.

A page may say what it is allowed to warn of, ``<!-- warns: ConvergenceWarning -->``, and what its snippets take as given,
``<!-- setup`` … ``-->``, which is run where it stands.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import sys
import types
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import raters as rt
from raters import cli, errors

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in ROOT.glob("docs/*/**/*.md") if not {"_build", "generated", "notebooks"} & set(page.parts)),
]
_BLOCK = re.compile(r"^(?:```(?P<kind>\w*)|<!-- (?P<setup>setup))\n(?P<source>.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
_WARNS = re.compile(r"<!-- warns: (.*?) -->")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block, and the line of the page that it begins on."""

    kind: str
    source: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, directives left out."""
    text = page.read_text()
    return [
        Block("setup" if found["setup"] else found["kind"], found["source"], text[: found.start("source")].count("\n"))
        for found in _BLOCK.finditer(text)
    ]


def name(page: Path) -> str:
    """A page's path, as a test is called."""
    return str(page.relative_to(ROOT))


SNIPPETS = [page for page in PAGES if any(block.kind in ("python", "setup") for block in blocks(page))]


@pytest.mark.slow
@pytest.mark.parametrize("page", SNIPPETS, ids=name)
def test_snippets_run(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Where a page takes the default back-end, its chains are short here: the code is on trial, not the draws.
    for module in ("raters.fit", "raters.acquisition.campaign"):
        monkeypatch.setattr(sys.modules[module], "PGGibbs", partial(rt.PGGibbs, draws=100, warmup=50, chains=2))
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # where dataclasses look for the names in their annotations
    found = blocks(page)
    with warnings.catch_warnings():
        # Short chains say that they are.
        warnings.filterwarnings("ignore", "the chains have not mixed well")
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
        for kind in _WARNS.findall(page.read_text()):
            warnings.simplefilter("ignore", getattr(errors, kind))
        for block in found:
            if block.kind in ("python", "setup"):
                exec(compile("\n" * block.line + block.source, str(page), "exec"), module.__dict__)


# --------------------------------------------------------------------------------------------------- command lines


def lines(page: Path) -> list[str]:
    """The command lines of a page."""
    fenced = "\n".join(block.source for block in blocks(page) if block.kind in ("", "sh"))
    return [line for line in fenced.splitlines() if line.startswith("raters ")]


@pytest.fixture
def tables(tmp_path) -> Path:
    """The files that command lines name, with the columns that they name."""
    votes = rt.datasets.crowd(num_items=4, num_annotators=6, num_votes=120, seed=0).votes
    rows = votes.to_frame()
    rows = rows.loc[rows.index.repeat(rows["count"])]
    rng = np.random.default_rng(0)
    won = rng.random(len(rows)) < 0.7
    winner, loser = np.where(won, rows["first"], rows["second"]), np.where(won, rows["second"], rows["first"])
    table = pd.DataFrame(
        {"winner": winner, "loser": loser, "worker": rows["annotator"].values, "annotator": rows["annotator"].values}
    )
    table.to_csv(tmp_path / "votes.csv", index=False)
    table.to_parquet(tmp_path / "votes.parquet")
    battles = pd.DataFrame({"model_a": winner, "model_b": loser, "winner": "model_a", "judge": table["worker"]})
    battles.loc[::7, "winner"] = "tie"
    battles.to_json(tmp_path / "battles.jsonl", orient="records", lines=True)
    labels = rt.datasets.label_crowd(num_items=20, num_annotators=5, labels_per_item=3, num_classes=2, seed=0).labels.to_frame()
    labels = labels.rename(columns={"item": "text", "annotator": "worker", "label": "says"})
    labels.assign(gold=labels["says"].where(labels["text"] == 0)).to_csv(tmp_path / "labels.csv", index=False)
    orders = [rng.permutation(["tea", "milk", "beer"]) for _ in range(12)]
    places = pd.DataFrame(orders, columns=["first", "second", "third"])
    places.assign(voter=range(12)).to_csv(tmp_path / "rankings.csv", index=False)
    long = pd.DataFrame({"patient": np.tile(range(5), 3), "rater": np.repeat(list("abc"), 5), "rating": rng.integers(1, 5, 15)})
    long.to_csv(tmp_path / "ratings.csv", index=False)
    return tmp_path


def words_of(line: str) -> list[str]:
    """What the shell makes of a line, without ``raters``."""
    return shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("page", [page for page in PAGES if lines(page)], ids=name)
def test_command_lines_are_understood(page: Path, tables, monkeypatch) -> None:
    """Commands, options and their values are known; nothing is run."""
    monkeypatch.chdir(tables)
    for line in lines(page):
        command, words = typer.main.get_command(cli.app), words_of(line)
        context = command.make_context("raters", list(words), resilient_parsing=False)
        while hasattr(command, "get_command"):
            command, words = command.get_command(context, words[0]), words[1:]
            assert command is not None, line
            context = command.make_context(command.name, list(words), parent=context)


# Audits and fits take the quickest back-end here, and types fewer numbers of types: the lines are on trial, not the samplers.
_QUICK = {"audit": ["--backend", "em"], "fit": ["--backend", "em"]}
# They wait for somebody to answer, or for the export of another program.
_NOT_RUN = ("raters campaign tell ", "raters campaign import ", "raters campaign export drinks.db --to label-studio")


@pytest.mark.thorough
@pytest.mark.parametrize("page", [page for page in PAGES if lines(page)], ids=name)
def test_command_lines_run(page: Path, tables, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tables)
    for line in lines(page):
        if line.startswith(_NOT_RUN):
            continue
        words = words_of(line)
        if "--compare" in words:
            words[words.index("--compare") + 1] = "1,2"
        if words[:2] == ["campaign", "start"]:
            Path(words[words.index("--out") + 1]).unlink(missing_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = cli.main([*words, *_QUICK.get(words[0], [])])
        assert code == 0, f"{line}\n{capsys.readouterr().err}"


# ------------------------------------------------------------------------------------------------------- reference


def test_every_public_name_is_in_the_reference() -> None:
    text = (ROOT / "docs/reference/index.md").read_text()
    listed = set(re.findall(r"^   (?:\w+\.)*(\w+)$", text, re.MULTILINE))
    for module in (rt, rt.acquisition, rt.datasets, rt.calibration, rt.testing, rt.inference):
        names = {name for name in module.__all__ if not isinstance(getattr(module, name), types.ModuleType)}
        assert names <= listed, f"{module.__name__}: {sorted(names - listed)}"


def test_every_model_has_a_page_that_is_listed() -> None:
    index = (ROOT / "docs/index.md").read_text()
    for model in rt.models.__all__:
        file = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", model).lower()
        assert (ROOT / f"docs/explanation/models/{file}.md").read_text().startswith(f"# `{model}`")
        assert f"explanation/models/{file}\n" in index
