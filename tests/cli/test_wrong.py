"""Wrong command lines and wrong files end with exit code 2 and one line that says what is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import raters as rt
from raters.cli import files
from raters.cli.app import main
from raters.errors import DataError
from raters.judgements.reading.files import names_in, read_table

VOTES = "votes.csv --winner w --loser l --annotator who"
# Command lines, each with a word that the message must have.
WRONG = {
    "nothing": "invalid choice",
    "audit": "FILE",
    "audit none.csv": "none.csv",
    "audit votes.csv": "which columns",
    "audit votes.csv --winer w": "--winer",
    "audit votes.csv --winner w": "--loser",
    "audit votes.csv --winner w --loser l --rating who": "--rating",
    f"audit {VOTES} --classes a,b": "--classes",
    f"audit {VOTES} --kind no_such_module:KIND": "no_such_module",
    f"audit {VOTES} --model dawid-skene": "dawid-skene",
    f"audit {VOTES} --set draws=many": "--set draws",
    f"audit {VOTES} --set position_bias=yes": "position_bias",
    f"audit {VOTES} --level 2": "--level",
    f"audit {VOTES} --threshold nan": "--threshold",
    "audit answers.csv --person p --item i --correct c --gold gold.csv": "calibration",
    f"audit {VOTES} --cost drop_good=-1": "drop_good",
    f"audit {VOTES} --gold gold.csv": "gold",
    f"audit {VOTES} --reference nobody": "--reference",
    f"audit {VOTES} --report page.pdf": "page.pdf",
    f"audit {VOTES} --out votes.csv": "--out",
    f"audit {VOTES} --model btl --drop": "treats all",
    f"audit {VOTES} --labels clean.csv": "--labels",
    f"audit {VOTES} --labels back.json": "Label Studio",
    f"audit {VOTES} --labels clean.txt": "clean.txt",
    f"audit {VOTES} --control mood": "--control",
    f"audit {VOTES} --repeats perhaps": "--repeats",
    f"fit {VOTES}": "--out",
    f"fit {VOTES} --out votes.csv": "votes.csv",
    "fit fake.nc --out a.nc": "fake.nc",
    "rank fake.nc": "netCDF",
    f"rank {VOTES} --out votes.csv --force": "is read",
    "rank fake.nc --winner w": "saved result",
    f"suggest {VOTES} --set target=nothing": "target",
    f"suggest {VOTES} --backend em --size 3": "--size",
    "report fake.nc --out page.doc": "page.doc",
    "simulate --out a.csv --set nothing=1": "nothing",
    "campaign start --items a,b --out c.db": "--annotators",
    "campaign start --items a,b --annotators x --winner w --out c.db": "--winner",
    "campaign start --items a,b --annotators x --until 2 --out c.db": "--until",
    "campaign ask none.db": "none.db",
    "campaign tell made.db votes.csv": "id",
    "campaign tell made.db votes.csv --from label-studio": "JSON",
    "campaign withdraw made.db 7": "7",
    "campaign consider made.db votes.csv": "column",
    "campaign export made.db --to csv --out q.csv": "no question is open",
    "campaign export made.db --to csv --out made.db": "made.db",
    "campaign export made.db --to argilla --out made.db --force": "is read",
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder with some files, which is the current one."""
    monkeypatch.chdir(tmp_path)
    lines = ["w,l,who", *("a,b,x", "b,c,y", "a,c,x", "c,a,z") * 8]
    Path("votes.csv").write_text("\n".join(lines))
    Path("gold.csv").write_text("winner,loser\n,\n")
    Path("answers.csv").write_text("p,i,c\nx,1,1\nx,2,0\ny,1,0\ny,2,1\n")
    Path("fake.nc").write_text("no netCDF")
    assert (
        main(["campaign", "start", "--items", "a,b", "--annotators", "x", "--out", "made.db", "-q"])
        == 0
    )
    return tmp_path


def test_wrong_command_lines_are_one_line_that_says_what_is_wrong(
    folder, capsys, monkeypatch
) -> None:
    """Each is refused before anything is fitted."""
    monkeypatch.setattr(rt.PGGibbs, "run", None)
    failed = []
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db"}
    for line, word in WRONG.items():
        try:
            code = main(line.split())
        except BaseException as error:
            failed.append((line, f"{type(error).__name__}: {error}"))
            continue
        err = capsys.readouterr().err
        own = [text for text in err.splitlines() if not text.startswith("raters: no columns")]
        one = len(own) == 1 and own[0].startswith("raters: ")
        if code != 2 or not one or word not in err or "Traceback" in err:
            failed.append((line, word, code, err))
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db"}
    assert not failed, "\n".join(map(str, failed))
    assert after == before


def test_a_second_run_leaves_nothing_of_the_first(tmp_path) -> None:
    def text(path: Path) -> None:
        path.write_text(path.name)

    files.write_folder(tmp_path, {"kept.csv": text, "old.csv": text}, whole=True)
    files.write_file(tmp_path / "ranking.csv", text)
    (tmp_path / "notes.txt").write_text("of the user")
    files.write_folder(tmp_path, {"kept.csv": text}, whole=True)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"kept.csv", "ranking.csv", "notes.txt", files.MANIFEST}


# Files that are no tables, by name and content, each with a word of the message.
BAD = {
    "a.csv": (b"", "empty"),
    "c.csv": (b"a,a\n1,2\n", "called 'a'"),
    "d.csv": (b"a,b\n1,2,3\n", "3 cells"),
    "e.csv": (b'a,b\n"1,2\n3,4\n', "quotation"),
    "g.csv": ("a,b\né,2\n".encode("latin-1"), "UTF-8"),
    "h.csv": (b"a,b\n\0,2\n", "NUL"),
    "j.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 99)[:20], "end"),
    "k.jsonl": (b'{"a": 1\n', "line 1"),
    "l.jsonl": (b'{"a": [1]}\n', "flat"),
    "n.jsonl": (b'{"a": 1, "a": 2}\n', "called 'a'"),
    "p.jsonl": (b"[" * 100000, "line 1"),
    "q.parquet": (b"PAR1 no", "Parquet"),
    "r.xlsx": (b"PK", "Excel"),
    "s.docx": (b"PK", "format"),
    "t.json": (b'[{"a": [1]}]', "flat"),
}


def test_bad_files_are_refused_with_a_reason(tmp_path) -> None:
    failed = []
    for name, (content, word) in BAD.items():
        path = tmp_path / name
        path.write_bytes(content)
        try:
            failed.append((name, read_table(path).to_dict()))
        except DataError as error:
            if not any(one in str(error) for one in word.split("|")) or name not in str(error):
                failed.append((name, str(error)))
    assert not failed, "\n".join(map(str, failed))


# Texts that are the table of one row, b and d.
GOOD = {
    "a.csv": "a,c\nb,d\n",
    "b.csv": "\ufeffa;c\r\nb;d\r\n\r\n",
    "c.csv": "sep=|\na|c\nb|d",
    "d.csv": 'a,c\n"b","d"\n,\n',
    "e.tsv": "a\tc\nb\td\n",
    "f.jsonl": '{"a": "b", "c": "d"}\n\n',
    "g.json": '[{"a": "b", "c": "d"}]',
    "h.json": '{"a": ["b"], "c": ["d"]}',
}


def test_forms_of_a_table_are_read_alike(tmp_path) -> None:
    expected = [{"a": "b", "c": "d"}]
    read = {}
    for name, text in GOOD.items():
        encodings = ["utf-8", "utf-16"] if "\ufeff" not in text else ["utf-8"]
        for encoding in encodings:
            path = tmp_path / f"{encoding}-{name}"
            path.write_bytes(text.encode(encoding))
            read[path.name] = read_table(path).to_dict("records")
            packed = path.with_name(f"{path.name}.gz")
            packed.write_bytes(gzip.compress(path.read_bytes()))
            read[packed.name] = read_table(packed).to_dict("records")
    assert {name: rows for name, rows in read.items() if rows != expected} == {}


def test_names_are_listed_or_in_a_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.txt").write_text("tea\n\nsalt, pepper\n")
    assert names_in("names.txt") == ["tea", "salt, pepper"]
    assert names_in('tea,"salt, pepper"') == ["tea", "salt, pepper"]
    Path("names.csv").write_text("a\n")
    for wrong in ("none.txt", "names.csv", '"tea'):
        with pytest.raises(DataError):
            names_in(wrong)
