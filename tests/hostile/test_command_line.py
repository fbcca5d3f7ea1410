"""Bad files, options, journals and consoles for the command line: one line on standard error, exit
code 2, and nothing written."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

import raters as rt
from raters.acquisition.campaign.database import _checksum
from raters.cli.app import main

HEAD = "winner,loser,annotator\n"
VOTES = HEAD + "a,b,x\nb,c,y\nc,a,x\n"
NAMED = ("--winner", "winner", "--loser", "loser", "--annotator", "annotator")
START = ("campaign", "start", "--items", "tea,milk", "--annotators", "ann")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with a table of votes and one of labels."""
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(VOTES)
    Path("labels.csv").write_text("item,annotator,label\n1,a,p\n1,b,p\n2,a,q\n2,b,p\n")
    return tmp_path


@pytest.fixture(scope="module")
def journal(tmp_path_factory) -> Path:
    """A campaign with two questions asked."""
    path = tmp_path_factory.mktemp("journal") / "good.db"
    pool = rt.Candidates.pairs(items=["tea", "milk"], annotators=["ann", "bob"])
    rt.Campaign(path, rt.BTL(), pool, policy=rt.Policy(score=rt.acquisition.Random())).ask(2)
    return path


def refused(capsys, *arguments: str) -> str:
    """The one line of a command that must be refused and write nothing."""
    before = sorted(Path().rglob("*"))
    code = main(list(arguments))
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), (code, out, err)
    assert err.startswith("raters: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert len(err) <= 620
    assert sorted(Path().rglob("*")) == before
    return err


# ---------------------------------------------------------------- files

FILES = {
    "empty.csv": ("", "expected a CSV"),
    "blank.csv": ("\n\n\n", "not a readable CSV"),
    "head.csv": (HEAD, "no rows|empty"),
    "binary.csv": (bytes(range(256)) * 20, "readable|column|UTF"),
    "nul.csv": (HEAD + "a,b\0c,x\n", "not UTF-8 text"),
    "mark.csv": (b"\xef\xbb\xbf", "readable"),
    "ragged.csv": (HEAD + "a,b,x\na,b\na,b,c,d,e\n", "line 4 has 5 cells, and the header 3; quote"),
    "quote.csv": (HEAD + '"a,b,x\nb,c,y\n', "quot|readable|missing|row"),
    "swallowed.csv": (HEAD + '"a,b,x\nb,c,y\n"c,a,x\n', "line 2, closed in line 4 has text behind"),
    "escaped.csv": (HEAD + '"a\\"b",c,x\n', "a mark inside of a cell is doubled"),
    "late-nul.csv": (HEAD + "a,b,x\n" * 20_000 + "a\0,b,x\n", "line 20002 holds the character NUL"),
    "joined.csv": (
        VOTES + VOTES,
        r"--winner winner holds its own name in row 3 \(counted from 0\)",
    ),
    "one.csv": ("winner\na\nb\n", "say which columns"),
    "twice.csv": ("winner,winner,loser\na,b,c\n", "twice|name"),
    "itself.csv": (HEAD + "a,a,x\n", "leave (such|those) rows out|--drop-bad-rows"),
    "missing.csv": (HEAD + "a,,x\n", "--drop-bad-rows"),
    "page.csv": ("<html><body>404</body></html>", "say which columns|no rows|readable"),
    "table.txt": (VOTES, "expected .csv"),
    "table": (VOTES, "expected .csv"),
    "junk.parquet": (b"PAR1junkPAR1", "not a readable Parquet"),
    "empty.parquet": (b"", "expected a Parquet"),
    "book.xlsx": (b"PK\x03\x04junk", "expected .csv"),
    "broken.csv.gz": (b"\x1f\x8bjunk", "readable"),
    "plain.csv.gz": (VOTES, "readable"),
    "inner.csv.gz": (gzip.compress(b"\xff\xfe\xff"), "readable|UTF"),
    "nested.jsonl": ('{"winner": {"a": 1}, "loser": "b"}\n', "one flat object"),
    "list.jsonl": ('{"winner": ["a"], "loser": "b"}\n', "one flat object"),
    "array.jsonl": ('["a", "b"]\n', "one flat object"),
    "number.jsonl": ("3\n", "one flat object"),
    "null.jsonl": ("null\n", "one flat object"),
    "half.jsonl": ('{"winner":\n', "not a readable JSON lines"),
    "deep.jsonl": ("[" * 100_000 + "]" * 100_000, "JSON lines"),
    "twice.jsonl": ('{"winner": "a", "winner": "b", "loser": "c"}\n', "twice"),
    "half-a-letter.jsonl": (
        '{"winner": "\\ud800", "loser": "b"}\n',
        "half a character|surrogate|JSON",
    ),
    "bytes.jsonl": (b'{"winner": "\xff", "loser": "b"}\n', "UTF-8|readable"),
    "empty.jsonl": ("", "empty|no rows|readable"),
    "latin.csv": ((HEAD + "é,b,x\n").encode("latin-1"), "UTF-8"),
    "utf-32.csv": ((HEAD + "a,,x\n").encode("utf-32"), "--drop-bad-rows"),
}


def test_rows_that_quotation_marks_make_one_are_told(folder, capsys):
    Path("cups.csv").write_text(
        'item,annotator,label\n"tea,ann,x\nmilk,bob,y\nbeer",carl,x\nbeer,ann,y\nbeer,bob,x\n'
    )
    assert main(["agreement", "cups.csv", "--out", "a.csv"]) == 0
    line = capsys.readouterr().err.splitlines()[0]
    assert line.startswith("raters: warning: 'cups.csv': lines 2 to 4 are read as one row")


@pytest.mark.parametrize(("flag", "name"), [("backend", "PGEM"), ("model", "Extended_BTL")])
def test_names_as_in_python_are_choices(folder, capsys, flag, name):
    refused(capsys, *FIT, f"--{flag}", name + "?")
    line = refused(capsys, *FIT, f"--{flag}", name, "--cluster-scale", "1")
    assert "--cluster-scale belongs to" in line or "No such option" in line
    assert "is not one of" not in line


@pytest.mark.parametrize(("name", "content"), FILES.items(), ids=FILES)
def test_tables(folder, capsys, name, content):
    raw, remedy = content
    Path(name).write_bytes(raw if isinstance(raw, bytes) else raw.encode())
    line = refused(capsys, "fit", name, "--out", "r.nc")
    assert re.search(remedy, line), line


@pytest.mark.parametrize(
    "name",
    ["none.csv", "a.csv", "loop.csv", "/dev/null", ".", "", "no/x.csv", "x\0.csv", "é" * 300],
)
@pytest.mark.parametrize("command", ["fit", "audit", "types", "suggest", "campaign status"])
def test_paths(folder, capsys, name, command):
    Path("a.csv").mkdir()
    Path("loop.csv").symlink_to("loop.csv")
    out = () if command in ("suggest", "campaign status") else ("--out", "there")
    refused(capsys, *command.split(), name, *out)


# ---------------------------------------------------------------- options

FIT = ("fit", "votes.csv", *NAMED, "--out", "r.nc")
LABELS = ("fit", "labels.csv", "--item", "item", "--label", "label", "--annotator", "annotator")
OPTIONS = [
    ((*FIT, "--draws", "0"), "--draws 0 is not possible"),
    ((*FIT, "--draws", "-1"), "--draws -1 is not possible"),
    ((*FIT, "--draws", "1e12"), "--draws"),
    ((*FIT, "--draws", "1" + "0" * 30), "less than 2**31"),
    ((*FIT, "--draws", "nan"), "--draws"),
    ((*FIT, "--draws", ""), "--draws"),
    ((*FIT, "--seed", "-1"), "--seed"),
    ((*FIT, "--seed", "4294967296"), "--seed"),
    ((*FIT, "--reward-scale", "0"), "--reward-scale 0.0 is not possible"),
    ((*FIT, "--reward-scale", "inf"), "--reward-scale inf is not possible"),
    ((*FIT, "--reward-scale", "1e12"), "--reward-scale 1000000000000.0 is not possible"),
    ((*FIT, "--reward-scale", "big"), "--reward-scale"),
    ((*FIT, "--competence", "é" * 2000), "--competence"),
    ((*FIT, "--model", "btll"), "--model"),
    ((*FIT, "--model", "dawid-skene"), "--model"),
    ((*FIT, "--backend", "é" * 2000), "--backend"),
    ((*FIT, "--backend", "em", "--chains", "2"), "--chains belongs to"),
    (
        ("simulate", "--design", "label-crowd", "--classes", "100000", "--out", "s.csv"),
        "--classes 100000 makes 200,000,000,000 values",
    ),
    ((*FIT, "--count", "nope"), "--count nope names no column"),
    ((*FIT, "--feature", "f"), "--feature"),
    ((*FIT, "--feature", "f=winner,loser"), "must hold numbers"),
    ((*FIT, "--items", "a,b"), "--items"),
    ((*FIT, "--items", ""), "--items"),
    ((*FIT, "--ties", "x"), "--ties"),
    ((*FIT, "--nope"), "--nope"),
    ((*FIT, "more", "files"), "more"),
    (("fit", "votes.csv"), "--out"),
    (("fit",), "Missing"),
    (("fit", "votes.csv", "--winner", "winner", "--out", "r.nc"), "--winner needs --loser"),
    (("fit", "votes.csv", "--winner", "nope", "--loser", "loser", "--out", "r"), "--winner nope"),
    ((*FIT, "--out", ""), "--out is empty; name a file or a folder"),
    (("audit", "votes.csv", "--out="), "--out is empty"),
    ((*FIT, "--feature", "price"), "--feature price does not say which name"),
    ((*FIT, "--feature", "price="), "write NAME=COLUMN,COLUMN, such as length="),
    (("audit", "votes.csv", "--report", ""), "--report is empty"),
    (
        ("audit", "votes.csv", "--out", "o", "--report", "o/summary.json"),
        "that raters writes there",
    ),
    (("audit", "votes.csv", "--report", "./.raters-files.json"), "that raters writes there"),
    ((*FIT, "--winner", "loser"), "--winner takes one column, and was given 'winner' and 'loser'"),
    ((*LABELS, "--out", "r.nc", "--feature", "x", "--feature", "x"), "--feature x comes twice"),
    ((*LABELS, "--out", "r.nc", "--count", "item"), "--count item is the column of --item as well"),
    ((*FIT, "--out", "votes.csv"), "votes.csv"),
    ((*FIT, "--out", "no/r.nc"), "no folder|no/"),
    ((*FIT, "--out", "x\0.nc"), "--out"),
    ((*LABELS, "--out", "r.nc", "--prevalence", "0"), "--prevalence 0.0 is not possible"),
    ((*LABELS, "--out", "r.nc", "--classes", "p"), "--classes"),
    ((*LABELS, "--out", "r.nc", "--repeats", "x"), "--repeats"),
    ((*LABELS, "--out", "r.nc", "--kind", "comparisons"), "--"),
    (("audit", "votes.csv", *NAMED, "--level", "nan"), "--level nan is not possible"),
    (("audit", "votes.csv", *NAMED, "--margin", "-1"), "--margin -1.0 is not possible"),
    (("audit", "votes.csv", *NAMED, "--min-judgements", "-1"), "--min-judgements"),
    (("audit", "votes.csv", *NAMED, "--batch-size", "0"), "--batch-size"),
    (("types", "votes.csv", *NAMED, "--num-types", "0"), "--num-types 0 is not possible"),
    (("types", "votes.csv", *NAMED, "--compare", "1,x"), "--compare"),
    (("suggest", "votes.csv"), "not a netCDF file"),
    (("simulate", "--design", "paper", "--out", "s.csv", "--votes", "1e12"), "--votes"),
    (("simulate", "--design", "paper", "--out", "s.csv", "--votes", "1" + "0" * 12), "--votes"),
    (("simulate", "--design", "paper", "--out", "s.csv", "--votes", "1000000000"), "100,000,000"),
    (("simulate", "--design", "paper", "--out", "s.csv", "--items", "1"), "--items 1"),
    (("simulate", "--design", "crowd", "--out", "s.csv", "--guessers", "nan"), "--guessers nan"),
    (("simulate", "--design", "separated", "--out", "s.csv", "--scale", "inf"), "--scale inf"),
    (("simulate", "--design", "nope", "--out", "s.csv"), "--design"),
    (("simulate", "--design", "paper", "--out", "s.xlsx"), ".csv"),
    ((*START, "--out", "c.db", "--budget", "nan"), "--budget nan is not possible"),
    ((*START, "--out", "c.db", "--cost", "x"), "--cost x cannot be read"),
    ((*START, "--out", "c.db", "--quota", "ann=0"), "--quota"),
    ((*START, "--out", "c.db", "--until", "1"), "--until 1.0 is not possible"),
    ((*START, "--out", "c.db", "--items", "tea"), "two items"),
    ((*START, "--out", "no/c.db"), "no folder"),
    ((*START, "--out", "c.db", "--items", "itms.csv"), """write '"itms.csv"'"""),
    ((*START, "--out", "c.db", "--annotators", "people.TXT"), "there is no file 'people.TXT'"),
    ((*START, "--out", "c.db", "--annotators", "lists/people"), "there is no file 'lists/people'"),
    ((*START, "--out", "c.db", "--items", '"a, b,c'), "put a name with a comma between quotation"),
    ((*START, "--out", "c.db", "--items", '"a" b,c'), "put a name with a comma between quotation"),
    ((*LABELS, "--out", "r.nc", "--classes", "clases.txt"), "there is no file 'clases.txt'"),
    ((*START, "--out", "c.db", "--label", "x"), "--label is about FILE"),
    (("campaign", "start", "--kind", "choices", "--out", "c.db"), "does not suggest which sets"),
    (
        ("campaign", "start", "--kind", "demonstrations", "--out", "c.db"),
        "a campaign of demonstrations needs FILE",
    ),
    (("campaign", "start", "--kind", "ratings", "--out", "c.db"), "of ratings needs FILE"),
    (("nope",), "nope"),
    (("--nope",), "--nope"),
    (("campaign", "nope"), "nope"),
]


@pytest.mark.parametrize(
    ("arguments", "words"), OPTIONS, ids=[" ".join(row[0])[-40:] for row in OPTIONS]
)
def test_options(folder, capsys, arguments, words):
    line = refused(capsys, *arguments)
    assert any(word in line for word in words.split("|")), line


# ---------------------------------------------------------------- journals


def altered(path: Path, *statements: tuple, sums: bool = False) -> None:
    """Change a journal; with the checksums that its rows then have, if asked."""
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(*statement)
        if sums:
            for row in db.execute("SELECT rowid, * FROM question").fetchall():
                fits = _checksum(row[1:-1])
                db.execute("UPDATE question SET checksum = ? WHERE rowid = ?", (fits, row[0]))
    db.close()


TABLES = ("fact", "part", "question", "answer")
JOURNALS = {
    **{f"no table {name}": [(f"DROP TABLE {name}",)] for name in TABLES},
    **{f"no row in {name}": [(f"DELETE FROM {name}",)] for name in ("fact", "part")},
    **{
        f"no column {column}": [(f"ALTER TABLE {table} RENAME COLUMN {column} TO zz",)]
        for table, column in (("fact", "value"), ("part", "value"), ("answer", "question"))
    },
    **{
        f"no {name}": [("DELETE FROM fact WHERE name = ?", (name,))]
        for name in (
            "identity/model",
            "identity/policy",
            "identity/backend",
            "identity/items",
            "identity/annotators",
            "identity/kind",
            "identity/seed",
            "identity/again",
            "identity/pool",
            "setting/stop",
        )
    },
    **{
        f"no {name}": [("DELETE FROM part WHERE name = ?", (name,))]
        for name in ("pool/first", "pool/second", "pool/annotator")
    },
    **{
        f"{value!r} as {name}": [("UPDATE fact SET value = ? WHERE name = ?", (value, name))]
        for name in ("identity/model", "identity/items", "setting/batch_size")
        for value in ("", "{", "null", "[[1]]")
    },
    "junk as an array": [("UPDATE part SET value = ?", (b"junk",))],
    "another checksum": [("UPDATE question SET checksum = 0",)],
    "another format": [("PRAGMA user_version = 99",)],
}
FORGED = {
    f"{column} of {value!r}": (f"UPDATE question SET {column} = ? WHERE number = 1", (value,))
    for column in ("row", "annotator", "batch", "score", "cost")
    for value in ("", "{", b"\xff\x00", "x", -1)
    if value != -1 or column in ("row", "annotator")
}


@pytest.mark.parametrize("change", JOURNALS.values(), ids=JOURNALS)
def test_journals(folder, capsys, journal, change):
    shutil.copy(journal, "c.db")
    altered(Path("c.db"), *change)
    line = refused(capsys, "campaign", "export", "c.db", "--to", "judgements", "--out", "a.csv")
    assert any(word in line for word in ("damaged", "newer raters", "kind")), line


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_journals_with_checksums_that_fit(folder, capsys, journal, change):
    shutil.copy(journal, "c.db")
    altered(Path("c.db"), change, sums=True)
    assert "damaged" in refused(capsys, "campaign", "status", "c.db")


@pytest.mark.parametrize("end", [0, 50, 100, 4096, -8192])
def test_journals_that_end_early(folder, capsys, journal, end):
    Path("c.db").write_bytes(journal.read_bytes()[:end])
    line = refused(capsys, "campaign", "status", "c.db")
    assert any(word in line for word in ("damaged", "no journal")), line


ANSWERS = {
    "no.csv": "id\n1\n",
    "header.csv": "answer\nfirst\n",
    "unknown.csv": "id,answer\nnope,first\n",
    "other.csv": "id,answer\n{id},zz\n",
    "two.csv": "id,answer\n{id},first\n{id},second\n",
    "empty.csv": "",
    "quote.csv": 'id,answer\n"{id},first\n',
    "twice.csv": "id,id,answer\n1,2,3\n",
}
EXPORTS = ("{}", "null", "3", "[1]", '[{"id": 1}]', "[", "", "[" * 50_000, '[{"annotations": 3}]')


@pytest.mark.parametrize(("name", "text"), ANSWERS.items(), ids=ANSWERS)
def test_answers(folder, capsys, journal, name, text):
    shutil.copy(journal, "c.db")
    asked = rt.Campaign.open("c.db").outstanding()["id"].values[0]
    Path(name).write_text(text.format(id=asked))
    refused(capsys, "campaign", "tell", "c.db", name)


@pytest.mark.parametrize("source", ["label-studio", "argilla"])
@pytest.mark.parametrize("text", EXPORTS, ids=lambda text: text[:20] or "empty")
def test_exports(folder, capsys, journal, source, text):
    shutil.copy(journal, "c.db")
    Path("e.json").write_text(text)
    refused(capsys, "campaign", "import", "c.db", "e.json", "--from", source)


# ---------------------------------------------------------------- consoles


def shown(monkeypatch, encoding: str, *arguments: str) -> str:
    """Standard output of a command on a console of this encoding."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, errors="strict") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(list(arguments)) == 0
        stream.flush()
        return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("encoding", "names"), [("ascii", ("t\\xe9e", "\\u0431")), ("latin-1", ("tée", "\\u0431"))]
)
def test_consoles_that_lack_characters(folder, capsys, monkeypatch, encoding, names):
    pool = rt.Candidates.pairs(items=["tée", "б"], annotators=["ånn"])
    rt.Campaign("c.db", rt.BTL(), pool, policy=rt.Policy(score=rt.acquisition.Random()))
    text = shown(monkeypatch, encoding, "campaign", "ask", "c.db")
    assert all(name in text for name in names)


def test_signs_that_a_console_lacks(folder, capsys, monkeypatch):
    text = shown(monkeypatch, "ascii", "--help")
    assert "Bayesian models of human judgement" in text
    assert "\\u" not in text.split("Commands")[-1]


def test_a_standard_input_that_was_closed(folder, capsys, monkeypatch, journal):
    shutil.copy(journal, "c.db")
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["campaign", "tell", "c.db"]) == 0
    sys.stdin.close()
    assert "0 answer(s) taken" in capsys.readouterr().err


def test_a_standard_error_that_was_closed(folder, capsys, monkeypatch, journal):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["campaign", "status", os.fspath(journal)]) == 0
    sys.stderr.close()


def test_too_little_memory(folder, capsys, monkeypatch):
    def unable(*_, **__):
        raise MemoryError("Unable to allocate 7 TiB")

    monkeypatch.setattr(rt.PGEM, "run", unable)
    line = refused(capsys, *FIT, "--backend", "em")
    assert "not enough memory" in line
