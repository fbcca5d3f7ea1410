"""The command line: what it writes, what it prints, and that every mistake costs one line and no
file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import arviz as az
import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.cli import app as cli
from raters.cli import audit, fitting, simulate
from raters.cli.options import ColumnOptions, FitOptions, GeneratedOptions, OutputOptions, worded
from raters.cli.outputs import write_folder
from raters.cli.reading import read, source_of
from raters.errors import DataError, DataWarning
from raters.kinds import AuditContext
from raters.program import Program
from tests.hand import stored, visible

RATERS = [sys.executable, "-m", "raters.cli.app"]


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command, in this process."""
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def columns(**given: object) -> ColumnOptions:
    """Options on columns, as if they had been typed."""
    options = GeneratedOptions.of(rt.kinds.registered_kinds()).columns
    return ColumnOptions(given=given, options=options)


def refused(capsys, folder: Path, *arguments: object) -> str:
    """The one line of a command that must be refused with exit code 2 and leave nothing behind."""

    def files() -> list[Path]:
        """All but the bytecode of modules that were imported."""
        return sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)

    before = files()
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("raters: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert files() == before
    return err


@pytest.fixture(scope="module")
def crowd(tmp_path_factory) -> Path:
    """Votes of a small crowd with adversaries and guessers, written by the command line itself."""
    file = tmp_path_factory.mktemp("crowd") / "votes.csv"
    options = (
        "--design",
        "crowd",
        "--items",
        "8",
        "--annotators",
        "10",
        "--votes",
        "1500",
        "--seed",
        "1",
        "--quiet",
    )
    assert cli.main(["simulate", "--out", str(file), *options]) == 0
    return file


@pytest.fixture(scope="module")
def audited(crowd) -> tuple[Path, str]:
    """One audit that the tests share: the folder that it wrote, and what it printed."""
    out = crowd.parent / "audit"
    done = subprocess.run(
        [
            *RATERS,
            "audit",
            crowd,
            "--backend",
            "em",
            "--draws",
            "300",
            "--trust-crowd",
            "--drop",
            "--out",
            out,
            "--batch-size",
            "4",
        ],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"COLUMNS": "80"},
    )
    assert "reading --winner winner --loser loser --annotator annotator" in done.stderr
    return out, done.stdout


@pytest.fixture
def votes(tmp_path) -> Path:
    """Three good votes."""
    file = tmp_path / "votes.csv"
    file.write_text("winner,loser,annotator\ntea,milk,ann\nmilk,water,bob\ntea,water,ann\n")
    return file


# ---------------------------------------------------------------- what is written and printed


def test_the_audit_writes_a_result_that_arviz_reads_and_figures(audited):
    out, _ = audited
    names = {
        "result.nc",
        "result-dropped.nc",
        "summary.json",
        "rewards.png",
        "competences.png",
        "auditor.png",
    }
    assert visible(out) == names
    result = stored(out / "result.nc")
    assert result.posterior["competence"].dims == ("chain", "draw", "annotator")
    assert "reward[0]" in az.summary(result, var_names=["reward"]).index
    # Most of a result, which an audit does without.
    assert "log_likelihood" not in result.children
    assert "log_likelihood" not in stored(out / "result-dropped.nc").children
    log_likelihood = rt.log_likelihood(rt.fitting.model_of(result), result).log_likelihood
    assert log_likelihood["outcome"].dims == ("chain", "draw", "comparison")
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in out.glob("*.png"))


def test_the_summary_is_strict_json_and_agrees_with_the_library(audited):
    out, _ = audited

    def no_constants(text):
        raise AssertionError(f"{text} is not JSON")

    summary = json.loads((out / "summary.json").read_text(), parse_constant=no_constants)
    result = stored(out / "result.nc")
    found = rt.audit(rt.ExtendedBTL(competence="signed"), result, reference="crowd")
    assert summary["settings"]["seed"] == 0
    assert summary["model"] == repr(rt.fitting.model_of(result))
    assert summary["audit"]["flagged"] == found.flagged
    assert summary["audit"]["rule"] == found.rule
    by_name = {entry["annotator"]: entry for entry in summary["audit"]["annotators"]}
    for name, competence in zip(
        found.table["annotator"].values, found.table["competence"].values, strict=True
    ):
        assert by_name[name]["competence"] == pytest.approx(float(competence))
    means = result.posterior["reward"].mean(("chain", "draw")).values
    ranking = summary["sections"]["items"]["tables"][0]["rows"]
    assert [int(entry["item"]) for entry in ranking] == np.argsort(-means).tolist()
    assert ranking[-1]["p_above_next"] is None
    assert {"raters", "jax", "numpyro"} <= set(summary["versions"])
    assert len(summary["suggestions"]) == 4


def test_the_audit_finds_the_planted_adversary_and_does_not_ask_it(audited):
    out, _ = audited
    truth = json.loads((out.parent / "votes-truth.json").read_text())
    summary = json.loads((out / "summary.json").read_text())
    adversaries = {name for name, kind in truth["kind"].items() if kind == "adversary"}
    assert adversaries
    assert adversaries <= set(summary["audit"]["flagged"])
    assert not {question["by"] for question in summary["suggestions"]} & set(
        summary["audit"]["flagged"]
    )


def test_dropping_the_flagged_is_reported(audited):
    out, printed = audited
    summary = json.loads((out / "summary.json").read_text())
    dropped = stored(out / "result-dropped.nc")
    assert dropped.posterior.sizes["annotator"] == 10 - len(summary["audit"]["flagged"])
    assert (
        "Kendall's tau of the two rankings is"
        f" {summary['sections']['without_flagged']['kendall_tau']:.3f}" in " ".join(printed.split())
    )


def test_the_printed_tables_fit_eighty_columns(audited):
    _, printed = audited
    assert max(map(len, printed.splitlines())) <= 80
    assert "\x1b" not in printed
    for heading in (
        "Items, highest reward first",
        "Annotators, least trusted first",
        "Next questions",
    ):
        assert heading in printed
    assert "Expected share of wrong drops" in printed
    assert "Verdict: with fewer than 5 votes" in printed


def test_known_orders_are_what_annotators_are_measured_against(crowd, tmp_path, capsys):
    """Pairs of two tables, of which one has the sides and an empty winner."""
    reward = pd.Series(json.loads((crowd.parent / "votes-truth.json").read_text())["reward"])
    if not isinstance(reward.index[0], str):
        reward.index = reward.index.astype(str)
    names = reward.sort_values(ascending=False).index.tolist()
    pd.DataFrame({"winner": names[:-1], "loser": names[1:]}).to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "b.csv").write_text(
        f"first,second,winner\n{names[2]},{names[0]},{names[0]}\n{names[3]},{names[0]},\n"
    )
    options = ("--backend", "em", "--draws", 300, "--quiet", "--out", tmp_path / "out")
    for gold, number in (("a.csv", 7), ("b.csv", 1)):
        code, printed, _ = run(capsys, "audit", crowd, *options, "--gold", tmp_path / gold)
        assert code == 0
        assert f"Annotators were measured against {number} known truth" in printed
    both = ("--gold", tmp_path / "a.csv", "--gold", tmp_path / "b.csv")
    assert "must have the same columns" in refused(
        capsys, tmp_path, "audit", crowd, *options, *both
    )
    said = refused(capsys, tmp_path, "audit", crowd, *options, "--gold", crowd)
    assert "orders that contradict each other" in said


def test_suggest_reads_a_saved_result(audited, tmp_path, capsys):
    out, _ = audited
    table = tmp_path / "next.csv"
    arguments = ("--batch-size", 3, "--annotator", 2, "--annotator", 3, "--out", table)
    code, printed, err = run(capsys, "suggest", out / "result.nc", *arguments)
    assert (code, err) == (0, f"raters: wrote 3 question(s) to {table}\n")
    assert run(capsys, "suggest", out / "result.nc", *arguments, "-q")[2] == ""
    asked = pd.read_csv(table)
    assert len(asked) == 3
    assert set(asked["by"]) <= {2, 3}
    assert f"{asked['score'][0]:.3f}" in printed


def test_suggest_names_axes_as_options(audited, tmp_path, capsys):
    given = ("suggest", audited[0] / "result.nc", "--true-class", "yes")
    says = "--true-class has no meaning for votes; their questions have --item, --annotator"
    assert says in refused(capsys, tmp_path, *given)
    assert "true_class" not in run(capsys, "suggest", "--help")[1]


def test_fit_with_btl_needs_no_annotators_and_the_audit_says_so(crowd, tmp_path, capsys):
    out = tmp_path / "btl"
    options = ("--model", "btl", "--backend", "em", "--draws", 50, "--quiet", "--rows", 4)
    code, printed, err = run(capsys, "audit", crowd, *options, "--out", out)
    assert (code, err.count("\n")) == (0, 1)
    assert "50 draws are too few to check them" in err
    assert "--model btl treats all annotators alike" in printed
    assert "anyone" in printed
    assert "… 4 more …" in printed
    assert visible(out) == {"result.nc", "summary.json", "rewards.png"}
    code, _, err = run(capsys, "fit", crowd, *options[:-2], "--out", tmp_path / "btl.nc")
    assert (code, err.count("\n")) == (0, 1)
    assert "50 draws are too few to check them" in err
    assert set(stored(tmp_path / "btl.nc").posterior) == {"reward", "reward_scale"}


def test_figures_of_an_earlier_audit_do_not_stay_among_the_new(audited, tmp_path):
    stale = tmp_path / "competences.png"
    write_folder(tmp_path, lambda folder: (folder / stale.name).write_bytes(b"old"))
    mine = tmp_path / "notes.txt"
    mine.write_text("keep me")
    result = stored(audited[0] / "result.nc")
    program = Program(rt.fitting.model_of(result), rt.Comparisons.from_result(result))
    nothing = audit.Findings(AuditContext(program, result, None, 0.9), (), pd.DataFrame(), "")
    audit._write(OutputOptions(tmp_path), nothing, {})
    assert not stale.exists()
    assert mine.exists()


@pytest.mark.parametrize("design", ["paper", "separated", "position-biased"])
def test_simulated_votes_read_back(design, tmp_path, capsys):
    out = tmp_path / "votes.parquet"
    sizes = ("--items", 5, "--annotators", 3, "--votes", 200)
    assert run(capsys, "simulate", "--design", design, *sizes, "--out", out)[0] == 0
    again, notes = read(source_of(out, columns()))
    drawn, truth = simulate.DESIGNS[design].generator(5, 3, 200, seed=0)
    assert (again.num_votes, len(notes), again.ordered) == (200, 1, design == "position-biased")
    for mine, original in (
        (again.first, drawn.first),
        (again.annotator, drawn.annotator),
        (again.wins, drawn.wins),
    ):
        np.testing.assert_array_equal(mine, original)
    written = json.loads((tmp_path / "votes-truth.json").read_text())
    assert list(written["competence"].values()) == pytest.approx(truth["competence"].tolist())


def test_help_and_version(capsys):
    code, out, err = run(capsys, "--version")
    assert (code, out, err) == (0, f"raters {rt.__version__}\n", "")
    for arguments in ((), ("--help",), ("audit", "-h")):
        code, out, err = run(capsys, *arguments)
        assert (code, err) == (0, "")
        assert "Usage: raters" in out


# ---------------------------------------------------------------- bad arguments and bad data


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "is empty; expected a CSV table"),
        ("binary.csv", b"\x00\x01\x02\xff", "is binary, not UTF-8 text"),
        ("latin.csv", b"winner,loser\n\xe9,b\n", "it is not UTF-8 text (byte 0xe9)"),
        ("votes.csv.gz", b"winner,loser\n", "Not a gzipped file"),
        ("votes.parquet", b"garbage", "is not a readable Parquet table"),
        ("votes.jsonl", b'{"winner":', "is not a readable JSON lines table: line 1 is not JSON"),
        ("nested.jsonl", b'{"winner": ["a"], "loser": "b"}\n', "line 1 is not one flat object"),
        ("ragged.csv", b"winner,loser\na,b,c\na,b\n", "line 2 has 3 cells, and the header 2"),
        ("votes.xlsx", b"PK", "cannot tell the format of"),
        ("rows.csv", b"winner,loser\n", "the table is empty"),
        ("missing.csv", b"winner,loser\na,b\na,\n", "data row 2 has a missing value"),
        ("self.csv", b"winner,loser\na,b\nb,b\n", "data row 2 has an item compared with itself"),
        ("names.csv", b"left,right\na,b\n", "none of the standard column names"),
        ("two.csv", b"winner,loser,rater,judge\na,b,1,2\n", "--annotator judge, or another"),
        ("shapes.csv", b"winner,loser,item,rating\na,b,c,1\n", "can be read in more than one way"),
        ("ties.csv", b"first,second,outcome\na,b,tie\na,b,a\n", "--ties error does not"),
        ("neither.csv", b"first,second,outcome\na,b,c\n", "neither side"),
        ("words.csv", b"item,rating,rater\na,good,1\nb,bad,1\n", "ratings are numbers, or levels"),
    ],
)
def test_a_bad_table_is_refused(name, content, message, tmp_path, capsys):
    file = tmp_path / name
    file.write_bytes(content)
    assert message in refused(capsys, tmp_path, "audit", file, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--winner", "winer", "--loser", "loser"], "--winner winer names no column of the table"),
        (["--winner", "winner"], "--winner needs --loser as well"),
        (
            ["--winner", "winner", "--item", "a"],
            "--winner and --item describe different shapes of table",
        ),
        (
            ["--item", "winner", "--column", "loser", "--count", "annotator"],
            "--count does not go with --item",
        ),
        (["--nonsense"], "No such option: --nonsense"),
        (["--backend", "gibs"], "'gibs' is not one of"),
        (["--ties", "maybe"], "'maybe' is not one of 'error', 'drop', 'half'"),
        (["--draws", "many"], "Invalid value for '--draws'"),
        (["--draws", "0"], "--draws 0 is not possible"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--backend", "em", "--chains", "2"], "--chains belongs to --backend gibbs, hmc, nuts"),
        (["--level", "2"], "--level 2.0 is not possible"),
        (["--threshold", "nan"], "--threshold nan is not possible"),
        (["--cost-review", "-1"], "--cost-review -1.0 is not possible"),
        (["--margin", "0"], "--margin 0.0 is not possible"),
        (["--reward-scale", "-1"], "--reward-scale -1.0 is not possible"),
        (["--competence-spread", "wide"], "--competence-spread wide is unknown"),
        (["--position-bias"], "--position-bias needs --first and --second and --outcome"),
        (
            ["--position-bias", "--winner", "winner", "--loser", "loser"],
            "--position-bias needs --first and --second and --outcome",
        ),
        (
            ["--model", "btl", "--drop"],
            "--drop needs annotators told apart, which --model btl does not",
        ),
        (
            ["--model", "btl", "--trust-crowd"],
            "--trust-crowd needs annotators told apart, which --model btl does not",
        ),
        (
            ["--model", "btl", "--influence"],
            "--influence needs annotators told apart, which --model btl does not",
        ),
        (
            ["--model", "btl", "--competence-spread", "1"],
            "--competence-spread belongs to --model extended-btl, guesser-btl, hierarchical-btl,"
            " linear-extended-btl,"
            " extended-plackett-luce, many-facet, and this is --model btl",
        ),
        (["extra"], "unexpected extra argument"),
        (["--progress", "yes"], "--progress is given the value 'yes', and takes none; write --pro"),
        (["--progress", "no"], "takes none; write --no-progress alone"),
        (["--no-progress", "No"], "takes none; write --progress alone"),
        (["-q", "on"], "-q is given the value 'on', and takes none; write -q alone"),
        (["-q", "off"], "-q is given the value 'off', and takes none; leave -q out"),
        (["-q", "extra"], "unexpected extra argument"),
    ],
)
def test_a_bad_option_is_refused(arguments, message, votes, tmp_path, capsys):
    assert message in refused(
        capsys, tmp_path, "audit", votes, "--out", tmp_path / "out", *arguments
    )


def test_what_is_not_there_or_cannot_be_written_is_refused(votes, tmp_path, capsys):
    assert "there is no file" in refused(capsys, tmp_path, "audit", tmp_path / "nothing.csv")
    assert "is a directory" in refused(capsys, tmp_path, "audit", tmp_path)
    assert "Missing argument" in refused(capsys, tmp_path, "audit")
    assert "Missing option '--out'" in refused(capsys, tmp_path, "fit", votes)
    assert "No such command 'adit'" in refused(capsys, tmp_path, "adit")
    assert "is a file; name a folder" in refused(capsys, tmp_path, "audit", votes, "--out", votes)
    assert "is a folder; name a file" in refused(capsys, tmp_path, "fit", votes, "--out", tmp_path)
    assert "there is no folder" in refused(
        capsys, tmp_path, "fit", votes, "--out", tmp_path / "no" / "x.nc"
    )
    assert "cannot be written" in refused(
        capsys, tmp_path, "audit", votes, "--out", votes / "below"
    )
    assert "no file" in refused(capsys, tmp_path, "suggest", tmp_path / "nothing.nc")
    assert "is not a netCDF file" in refused(capsys, tmp_path, "suggest", votes)
    assert "cannot tell the format" in refused(
        capsys, tmp_path, "simulate", "--out", tmp_path / "votes.doc"
    )
    assert "is not one of" in refused(
        capsys, tmp_path, "simulate", "--out", tmp_path / "v.csv", "--design", "crwd"
    )


def test_a_netcdf_file_that_is_no_result_is_refused(tmp_path, capsys):
    pd.Series([1.0], name="x", index=pd.Index([0], name="row")).to_xarray().to_netcdf(
        tmp_path / "other.nc"
    )
    assert "no result of raters" in refused(capsys, tmp_path, "suggest", tmp_path / "other.nc")


def test_an_unknown_annotator_is_refused(audited, tmp_path, capsys):
    assert "nobody" in refused(
        capsys, tmp_path, "suggest", audited[0] / "result.nc", "--annotator", "nobody"
    )


def test_an_error_of_the_library_speaks_of_options():
    error = DataError("in Python", parameter="ties", value="error", expected="write drop or half")
    flags = {"ties": "--ties", "cost_keep_bad": "--cost-keep-bad", "places": "--place"}
    assert worded(error, flags) == "--ties error is not possible; write drop or half"
    assert worded(error, {}) == "ties error is not possible; write drop or half"
    assert worded(DataError("in words"), flags) == "in words"
    error = DataError("", parameter="keep_bad", value=-1, expected="it must be positive")
    assert worded(error, flags).startswith("--cost-keep-bad -1 is not possible")
    error = DataError("", parameter="place 2", value="x", problem="is no column", expected="look")
    assert worded(error, flags) == "--place x is no column; look"
    error = DataError(parameter="model", value=rt.ExtendedBTL(), expected="fit `places` first")
    assert worded(error, flags) == "model extended-btl is not possible; fit --place first"


def test_a_failed_second_fit_is_a_warning(audited, monkeypatch, capsys):
    def refuse(*_, **__):
        raise DataError("dropping these annotators would leave no vote")

    result = stored(audited[0] / "result.nc")
    model = rt.ExtendedBTL(competence="signed")
    monkeypatch.setattr(rt, "drop", refuse)
    data, found = rt.Comparisons.from_result(result), rt.audit(model, result, reference="crowd")
    with pytest.warns(DataWarning, match="no second fit: dropping"):
        assert fitting.refit(model, data, found, rt.PGEM(), FitOptions(quiet=True)) is None


def test_warnings_are_one_line_each_and_go_into_the_summary(tmp_path, capsys):
    file = tmp_path / "apart.csv"
    file.write_text("winner,loser\na,b\nb,a\nc,d\nd,c\n")
    options = ("--model", "btl", "--backend", "em", "--draws", 20, "--quiet")
    code, _, err = run(capsys, "audit", file, *options, "--out", tmp_path / "out")
    lines = err.splitlines()
    assert code == 0
    assert len(lines) >= 1
    assert all(line.startswith("raters: warning: ") for line in lines)
    assert sum("2 components" in line for line in lines) == 1
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [f"raters: warning: {text}" for text in summary["warnings"]] == lines


# ---------------------------------------------------------------- interruption and pipes


@pytest.mark.parametrize("command", ["audit", "fit"])
def test_an_interrupted_fit_leaves_nothing(command, votes, tmp_path, monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rt, "fit", interrupt)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = run(capsys, command, votes, "--out", tmp_path / "out", "--quiet")
    assert (code, out, err) == (130, "", "raters: interrupted; nothing was written\n")
    assert sorted(tmp_path.rglob("*")) == before


def test_an_interruption_while_writing_leaves_what_was_there(
    audited, crowd, tmp_path, monkeypatch, capsys
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    out = tmp_path / "out"
    write_folder(out, lambda folder: (folder / "result.nc").write_text("of yesterday"))
    result = stored(audited[0] / "result.nc")
    monkeypatch.setattr(rt, "fit", lambda *_, **__: result)
    monkeypatch.setattr("raters.figures.competences", interrupt)
    code, _, err = run(capsys, "audit", crowd, "--out", out, "--quiet")
    assert (code, err) == (130, "raters: interrupted; nothing was written\n")
    assert visible(out) == {"result.nc"}
    assert (out / "result.nc").read_text() == "of yesterday"
    assert list(tmp_path.iterdir()) == [out]


def test_control_c_in_a_running_fit(crowd, tmp_path):
    command = [
        *RATERS,
        "fit",
        crowd,
        "--draws",
        "1000000",
        "--chains",
        "2",
        "--out",
        tmp_path / "x.nc",
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        # The note about columns comes once the table is read, just before the fit.
        first = process.stderr.readline()
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert first.startswith("raters: no columns were named")
    assert (process.returncode, out) == (130, "")
    assert err == "raters: interrupted; nothing was written\n"
    assert list(tmp_path.iterdir()) == []


# As the installed program does.
ENTRY = "import sys; from raters.cli import main; sys.exit(main())"


@pytest.mark.parametrize("module", ["typer", "jax._src.core", "xarray.core.variable"])
def test_control_c_while_modules_are_imported(module, votes):
    command = [sys.executable, "-X", "importtime", "-c", ENTRY, "audit", votes]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while line := process.stderr.readline():
            if line.split("|")[-1].strip() == module:
                break
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    said = [line for line in rest.splitlines() if not line.startswith("import time:")]
    assert (process.returncode, said) == (130, ["raters: interrupted"])


def test_help_needs_neither_jax_nor_the_models():
    code = "import sys; from raters.cli import main; main(); print('jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"


def test_an_interrupt_that_python_ignores_is_raised_once_more(votes, tmp_path, monkeypatch, capsys):
    """As one that meets JAX in its callback of garbage collection."""

    class Ignoring:
        def __del__(self):
            raise KeyboardInterrupt

    def fit(*_, **__):
        Ignoring()
        for _ in range(500):
            time.sleep(0.01)

    monkeypatch.setattr(rt, "fit", fit)
    # A shell lets commands in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, _, err = run(capsys, "fit", votes, "--out", tmp_path / "x.nc", "--quiet")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, err) == (130, "raters: interrupted; nothing was written\n")


@pytest.mark.parametrize("arguments", [["suggest"], ["audit", "--help"]])
def test_a_reader_that_goes_away_costs_no_traceback(arguments, audited):
    read, write = os.pipe()
    os.close(read)
    command = [*RATERS, *arguments, *([audited[0] / "result.nc"] if len(arguments) == 1 else [])]
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 141
    assert done.stderr == ""
