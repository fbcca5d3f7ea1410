"""Every Python snippet of the pages runs, in the order of its page; command lines that begin with
``raters`` are read by the program, and under the mark ``slow`` run. The README is short, its
links lead to files, and its numbers are those of the benchmarks.

A page may say what it is allowed to warn of, ``<!-- warns: ConvergenceWarning -->``, and what its
snippets take as given, ``<!-- setup`` … ``-->``, which is run where it stands.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
import types
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters import errors
from raters.cli.app import main, parser_of_all
from raters.cli.reading import given_roles
from raters.inference import defaults
from tests import hand

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    *sorted(
        page
        for page in ROOT.glob("docs/*/**/*.md")
        if not {"_build", "generated", "notebooks"} & set(page.parts)
    ),
]
_BLOCK = re.compile(
    r"^(?:```(?P<kind>\w*)|<!-- (?P<setup>setup))\n(?P<source>.*?)^(?:```|-->)$",
    re.MULTILINE | re.DOTALL,
)
_WARNS = re.compile(r"<!-- warns: (.*?) -->")


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block, and the line of the page that it begins on."""

    kind: str
    source: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, without directives."""
    text = page.read_text()
    return [
        Block(
            "setup" if match["setup"] else match["kind"],
            match["source"],
            text[: match.start("source")].count("\n"),
        )
        for match in _BLOCK.finditer(text)
    ]


# Pages that take longest, and whose like runs at every change.
_EXHAUSTIVE = {
    "CONTRIBUTING.md",
    "anchor-an-audit.md",
    "ask-the-next-question.md",
    "audit.md",
    "calibration.md",
    "find-types.md",
    "item-responses.md",
    "rankings.md",
    "ratings.md",
    "several-kinds.md",
    "ties-and-covariates.md",
}


def marked(pages: list[Path]) -> list[Any]:
    """Mark pages as slow, all but the README, and those that take longest as exhaustive."""
    return [
        page
        if page.name == "README.md"
        else pytest.param(
            page, marks=(pytest.mark.slow, *[pytest.mark.exhaustive] * (page.name in _EXHAUSTIVE))
        )
        for page in pages
    ]


def name(page: Path) -> str:
    """Return the path of a page as the name of its test."""
    return str(page.relative_to(ROOT))


SNIPPETS = [
    page for page in PAGES if any(block.kind in ("python", "setup") for block in blocks(page))
]


@pytest.mark.parametrize("page", marked(SNIPPETS), ids=name)
def test_snippets_run(page: Path, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Where a page uses the default back-end, its chains are short here: the code is tested, not
    # the draws.
    short = partial(rt.PGGibbs, draws=100, warmup=50, chains=2)
    monkeypatch.setattr(defaults, "PGGibbs", short)
    module = types.ModuleType("page")
    monkeypatch.setitem(
        sys.modules, "page", module
    )  # where dataclasses look for the names in their annotations
    with warnings.catch_warnings():
        # Short chains say that they are.
        warnings.filterwarnings("ignore", "the chains have not mixed well")
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
        for kind in _WARNS.findall(page.read_text()):
            warnings.simplefilter("ignore", getattr(errors, kind))
        for block in blocks(page):
            if block.kind in ("python", "setup"):
                exec(compile("\n" * block.line + block.source, str(page), "exec"), module.__dict__)


# ---------------------------------------------------------------------- command lines


def lines(page: Path) -> list[str]:
    """Return the command lines of a page."""
    fenced = "\n".join(block.source for block in blocks(page) if block.kind in ("", "sh"))
    return [line for line in fenced.splitlines() if line.startswith("raters ")]


def annotation_of(row: pd.Series) -> dict[str, Any]:
    """Return a label as Label Studio exports it."""
    value = {"choices": [str(row["says"])]}
    result = [{"from_name": "mood", "to_name": "text", "type": "choices", "value": value}]
    return {"completed_by": int(row["worker"]), "result": result}


@pytest.fixture
def tables(tmp_path) -> Path:
    """Write the files and columns that command lines name."""
    votes = rt.datasets.crowd(num_items=4, num_annotators=6, num_votes=120, seed=0).votes
    rows = votes.to_frame()
    rows = rows.loc[rows.index.repeat(rows["count"])]
    rng = np.random.default_rng(0)
    won = rng.random(len(rows)) < 0.7
    winner, loser = (
        np.where(won, rows["first"], rows["second"]),
        np.where(won, rows["second"], rows["first"]),
    )
    table = pd.DataFrame(
        {
            "winner": winner,
            "loser": loser,
            "worker": rows["annotator"].values,
            "annotator": rows["annotator"].values,
        }
    )
    table.to_csv(tmp_path / "votes.csv", index=False)
    table.to_parquet(tmp_path / "votes.parquet")
    asked = {"winner": "first", "loser": "second", "worker": "by"}
    table.rename(columns=asked).head(3).to_csv(tmp_path / "arrived.csv", index=False)
    battles = pd.DataFrame(
        {"model_a": winner, "model_b": loser, "winner": "model_a", "judge": table["worker"]}
    )
    battles.loc[::7, "winner"] = "tie"
    lengths = rng.normal(size=(2, len(battles))).round(2)
    topic = np.where(np.arange(len(battles)) % 2, "code", "talk")
    battles = battles.assign(length_a=lengths[0], length_b=lengths[1], topic=topic)
    battles.to_json(tmp_path / "battles.jsonl", orient="records", lines=True)
    labels = rt.datasets.label_crowd(
        num_items=20, num_annotators=5, labels_per_item=3, num_classes=2, seed=0
    ).labels.to_frame()
    labels = labels.rename(columns={"item": "text", "annotator": "worker", "label": "says"})
    labels.assign(gold=labels["says"].astype("Int64").where(labels["text"] == 0)).to_csv(
        tmp_path / "labels.csv", index=False
    )
    gold = labels.drop_duplicates("text").rename(columns={"text": "item", "says": "truth"})
    gold[["item", "truth"]].head(8).to_csv(tmp_path / "truths.csv", index=False)
    known = table[["winner", "loser"]].query("winner < loser").drop_duplicates()
    known.head(4).to_csv(tmp_path / "orders.csv", index=False)
    orders = [rng.permutation(["tea", "milk", "beer"]) for _ in range(12)]
    places = pd.DataFrame(orders, columns=["first", "second", "third"])
    places.assign(voter=range(12)).to_csv(tmp_path / "rankings.csv", index=False)
    best = pd.DataFrame(orders, columns=["pos1", "pos2", "pos3"]).assign(who=[*"abc"] * 4)
    best.drop(columns="pos3").to_csv(tmp_path / "drinks.csv", index=False)
    ends = {"BestItem": best["pos1"], "WorstItem": best["pos3"], "annotator": best["who"]}
    shown = pd.DataFrame({"Item1": "tea", "Item2": "milk", "Item3": "beer"} | ends)
    shown.to_csv(tmp_path / "named.csv", index=False)
    races = pd.DataFrame({"race": np.repeat(range(12), 3), "driver": np.ravel(orders)})
    races.assign(finish=[1, 2, 3] * 12).to_csv(tmp_path / "races.csv", index=False)
    long = pd.DataFrame(
        {
            "patient": np.tile(range(5), 3),
            "rater": np.repeat(list("abc"), 5),
            "rating": rng.integers(1, 5, 15),
        }
    )
    long.to_csv(tmp_path / "ratings.csv", index=False)
    qualities = pd.DataFrame({"item": range(4), "value": [3, 1, 4, 2]})
    qualities.to_csv(tmp_path / "qualities.csv", index=False)
    scores = long.pivot(index="patient", columns="rater", values="rating").add_prefix("judge_")
    scores.rename_axis("prompt").to_csv(tmp_path / "scores.csv")
    person, item = (grid.ravel() for grid in np.indices((12, 5)))
    answers = pd.DataFrame(
        {"person": person, "item": item, "correct": rng.integers(0, 2, person.size)}
    )
    answers.to_csv(tmp_path / "answers.csv", index=False)
    wide = answers.pivot(index="person", columns="item", values="correct").add_prefix("q")
    wide.to_csv(tmp_path / "benchmark.csv")
    shutil.copy(tmp_path / "votes.csv", tmp_path / "today.csv")
    pair, judge = (grid.ravel() for grid in np.indices((30, 3)))
    verdicts = pd.DataFrame({"pair": pair, "judge": np.array(["ann", "bob", "gpt"])[judge]})
    more = {"better": rng.integers(1, 3, pair.size), "swapped": rng.integers(0, 2, pair.size)}
    verdicts.assign(**more).to_csv(tmp_path / "verdicts.csv", index=False)
    modes = ["car", "train", "bus"]
    took = pd.Series(rng.choice(modes, 40))
    prices = {f"{mode}_price": rng.uniform(1, 9, 40) for mode in modes}
    survey = pd.DataFrame({"took": took, "bus_runs": 1, "income": rng.uniform(1, 9, 40), **prices})
    survey.to_csv(tmp_path / "survey.csv", index=False)
    trips = survey.reset_index(names="trip").melt(
        ["trip", "took", "income"], [*prices], "mode", "price"
    )
    trips["mode"] = trips["mode"].str.removesuffix("_price")
    trips.assign(taken=trips["mode"] == trips["took"]).to_csv(tmp_path / "trips.csv", index=False)
    export = [
        {"id": item, "data": {}, "annotations": [annotation_of(row) for _, row in rows.iterrows()]}
        for item, rows in labels.groupby("text")
    ]
    (tmp_path / "export.json").write_text(json.dumps(export))
    walks = rt.datasets.demonstration_crowd(2, 2, 4, 4, 6, seed=0, num_features=2).demonstrations
    hand.write_demonstrations(walks, tmp_path)
    return tmp_path


def words_of(line: str) -> list[str]:
    """Split a line as a shell does, and leave ``raters`` out."""
    return shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("page", [page for page in PAGES if lines(page)], ids=name)
def test_command_lines_are_understood(page: Path, tables, monkeypatch) -> None:
    """Commands, options and their values are known; nothing is run."""
    monkeypatch.chdir(tables)
    for line in lines(page):
        words = words_of(line)
        given, columns = parser_of_all().parse_known_args(words)
        assert given.command, line
        assert "drop_bad_rows" in given or not columns, line
        given_roles(columns)


# Audits and fits use the quickest back-end here: the lines are tested, not the samplers.
_WITHOUT_BLOCKS = ["--backend", "svi", "--set", "steps=500", "--set", "draws=50"]
_QUICK = ["--backend", "em"]
# Commands that wait for answers, or for the export of another program, or take NUTS.
_NOT_RUN = (
    "raters audit trips.csv --set trip --alternative mode --chosen taken --model nested-logit",
    "raters campaign tell ",
    "raters serve ",
    "raters campaign export drinks.db --to label-studio",
)


@pytest.mark.slow
@pytest.mark.parametrize("page", marked([page for page in PAGES if lines(page)]), ids=name)
def test_command_lines_run(page: Path, tables, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tables)
    for line in lines(page):
        if line.startswith(_NOT_RUN):
            continue
        words = words_of(line)
        if words[:2] == ["campaign", "start"] or words[0] == "simulate":
            Path(words[words.index("--out") + 1]).unlink(missing_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quick = _WITHOUT_BLOCKS if "demonstrations" in words else _QUICK
            commands = ("audit", "fit", "report", "rank", "judges")
            fits = words[0] in commands and ".nc" not in words[1] and "--update" not in words
            code = main([*words, *(quick if fits else [])])
        assert code == 0, f"{line}\n{capsys.readouterr().err}"


# ---------------------------------------------------------------------- the README


def test_readme_is_short_and_has_one_example() -> None:
    text = README.read_text()
    assert len(text) <= 6000
    assert [block.kind for block in blocks(README)].count("python") == 1
    printed = re.search(
        r"<!-- printed by benchmarks/readme\.py -->\n```text\n(.+?)```\n<!-- end -->",
        text,
        re.DOTALL,
    )
    assert printed is not None
    for word in ("verdict", "keep", "drop"):
        assert word in printed[1]
    for command in ("make demo", "make test", "pip install ."):
        assert re.search(rf"^{re.escape(command)}\s", text, re.MULTILINE), command


def links(text: str) -> list[str]:
    """Return the targets of links and pictures that are in the repository."""
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    return [target for target in targets if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs/index.md"], ids=name)
def test_links_lead_to_files(page: Path) -> None:
    # In the built pages, the notebooks lie in docs/.
    copied = str(ROOT / "docs/notebooks")
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        file = Path(str(file).replace(copied, str(ROOT / "notebooks")))
        assert file.exists(), f"{name(page)} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{name(page)} links to {target}"


_NUMBER = re.compile(r"(?<![\w.,])-?\d*[\d,]*\.?\d+(?![\w.]*\d)")


def numbers(text: str) -> list[str]:
    """Return the numbers of a text, without thousands separators."""
    return [number.replace(",", "") for number in _NUMBER.findall(text)]


def measured() -> list[str]:
    """Return the items of the README's list of measurements."""
    section = re.search(r"^## Measured\n(.*?)^## ", README.read_text(), re.MULTILINE | re.DOTALL)
    assert section is not None
    return re.findall(r"^- (.+)$", section[1], re.MULTILINE)


def test_measurements_of_the_readme_are_in_the_tables_that_it_links_to() -> None:
    assert len(measured()) == 3
    for line in measured():
        (target,) = links(line)
        assert target.startswith("benchmarks/results/")
        table = [float(number) for number in numbers((ROOT / target).read_text())]
        stated = numbers(re.sub(r"\(\[.*?\]\(.*?\)\)", "", line))
        assert stated, line
        for number in stated:
            digits = len(number.partition(".")[2])
            assert any(round(value, digits) == float(number) for value in table), (number, line)


@pytest.mark.slow
def test_printed_audit_and_figure_of_the_readme_are_those_of_its_example() -> None:
    script = ROOT / "benchmarks/readme.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------- installation


# As the name of a package, not as that of a repository's address or folder.
_FROM_THE_INDEX = re.compile(r"\b(pip|uv)\b[^#\n]* (install|add)\b[^#\n]*\s[\"']?raters\b(?!/)")


def test_no_page_installs_raters_from_the_package_index() -> None:
    pages = [*PAGES, ROOT / "docs/index.md", ROOT / "benchmarks/README.md"]
    texts = {name(page): page.read_text() for page in pages}
    for notebook in sorted(ROOT.glob("notebooks/*.ipynb")):
        cells = json.loads(notebook.read_text())["cells"]
        texts[name(notebook)] = "\n".join("".join(cell["source"]) for cell in cells)
    for page, text in texts.items():
        assert not _FROM_THE_INDEX.search(text), page


# ---------------------------------------------------------------------- the pages


def test_the_pages_are_few_and_short() -> None:
    pages = [ROOT / "docs/index.md", *(page for page in PAGES if ROOT / "docs" in page.parents)]
    assert len(pages) <= 45
    assert sum(len(page.read_text().split()) for page in pages) <= 35_000


def test_every_page_is_listed() -> None:
    index = (ROOT / "docs/index.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in PAGES if ROOT / "docs" in page.parents]
    missing = [str(page) for page in pages if f"\n{page.with_suffix('')}\n" not in index]
    assert not missing


def test_every_model_has_a_section() -> None:
    pages = (ROOT / "docs/explanation/models").glob("*.md")
    sections = re.findall(r"^## `(\w+)`$", "\n".join(page.read_text() for page in pages), re.M)
    assert sorted(sections) == sorted(rt.models.__all__)


def test_the_reference_has_the_names_of_each_module(monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs/_ext"))
    from reference import MODULES, public_names

    assert all(public_names(name) for name in MODULES)
    assert set(public_names("raters")) >= {"BTL", "audit", "fit"}
