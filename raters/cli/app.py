"""Commands and options. Modules that compute are imported by the command that needs them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from raters.errors import RatersError, SettingError, one_line

ABOUT = """Bayesian models of human judgement: who can be trusted, what people prefer, and
what to ask next."""
COLUMNS = """\
Columns are options, and tell what was judged; `raters models` lists them all:
  comparisons  --winner --loser, or --first --second --outcome
  labels       --item --annotator --label
  ratings      --item --rating, or --item --column 'judge_*'
  rankings     --place (several), --ranking --item --rank, or
               --offered --best --worst
  responses    --person --item --correct, graded --response
  choices      --set --alternative --chosen, or --choice --alternatives A,B
Also --annotator --count --feature --column --family --ties half --classes A,B.
Of exports, choices, ratings and pairwise answers; no spans, boxes or texts."""


def _one(metavar: str, text: str | None = None, **settings: Any) -> dict[str, Any]:
    kind = Path if metavar in ("FILE", "DIR", "CAMPAIGN.db", "RESULT.nc") else str
    return {"metavar": metavar, "help": text, "type": kind} | settings


def _several(metavar: str, text: str, **settings: Any) -> dict[str, Any]:
    return _one(metavar, f"{text} (several)", action="append", default=[], **settings)


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


_OPTIONS: dict[str, dict[str, Any]] = {
    "--kind": _one("KIND", "of judgement, or your own MODULE:NAME"),
    "--control": _one("NAME", "of an export: which question, or NAME=CLASS"),
    "--model": _one("NAME", "see `raters models`"),
    "--backend": _one("NAME", "gibbs, nuts, hmc, em or svi"),
    "--set": _several("NAME=VALUE", "of model or back-end, see `raters models`"),
    "--drop-bad-rows": _flag("leave out rows without a judgement"),
    "--seed": _one("NUMBER", "of all random numbers (0)", type=int, default=0),
    "--quiet": _flag("no notes and no progress"),
    "--force": _flag("replace files that raters did not write"),
    "--gold": _several("FILE", "table of known truths"),
    "--reference": _several("NAME", "somebody who is right"),
    "--trust-crowd": _flag("take the crowd to be right"),
    "--level": _one("NUMBER", "probability of the intervals (0.9)", type=float, default=0.9),
    "--unit": _one("UNIT", "of the scores: logit, elo or win", default="logit"),
    "--by": _one("WHAT", "boards side by side: category or style"),
    "--threshold": _one("NUMBER", "below it a judge is bad (0.25)", type=float),
    "--drop": _flag("fit again without those flagged"),
    "--with": _one("A,B", "more: agreement, check, influence, types", dest="more", default=""),
    "--report": _several("FILE", "also write .html, .md or .json, and figures"),
    "--labels": _several("FILE", "labels: a table, or an export with them (.json)"),
    "--batch-size": _one("NUMBER", "questions to suggest (10)", type=int, default=10),
    "--size": _one("NUMBER", "items of a set to rank", type=int),
    "--again": _flag("ask people also what they have answered"),
    "--annotator": _several("NAME", "only this one"),
    "--budget": _one("NUMBER", "most that answers cost", type=float),
    "--until": _one("NUMBER", "stop at this expected tau, or share of classes", type=float),
    "--number": _one("NUMBER", "of questions (a batch)", type=int),
    "--from": _one("TOOL", "the tool that wrote FILE: label-studio or argilla", dest="source"),
    "--people": _several("USER=NAME", "who is who there"),
    "--correct": _flag("let an answer replace another"),
    "--quick": _flag("an approximate answer, in seconds"),
    "--update": _one("RESULT.nc", "add to this fit, and say what changed"),
    "--rate": _one("NUMBER", "share to be asked (0.1)", type=float),
    "--to": _one("FORM", "csv, label-studio, argilla, or judgements (all)", required=True),
    "--texts": _one("FILE", "table with columns item and text"),
    "--question": _one("COLUMN", "what was asked, where systems are compared"),
    "--swapped": _one("COLUMN", "1 where the second answer was shown first"),
    "--lengths": _one("A,B", "columns with the lengths of the two answers"),
    "--time": _one("COLUMN", "when a verdict was given"),
    "--target": _one("NUMBER", "accuracy of the cheapest panel (0.9)", type=float, default=0.9),
    "--card": _one("NAME", "print all about one judge"),
    "--tokens": _one("FILE", "table with annotator and token, written where there is none"),
    "--host": _one("NAME", "of the interface (127.0.0.1)", default="127.0.0.1"),
    "--port": _one("NUMBER", "of the server (8000)", type=int, default=8000),
    "--design": _one("NAME", "of `raters models` (crowd)", default="crowd"),
    "--cost": _several("NAME=NUMBER", "keep_bad, drop_good or review"),
    "--out": _one("FILE", "also write it as a table"),
    "journal": _one("CAMPAIGN.db"),
    "file": _one("FILE", nargs="?"),
    "ids": _one("ID", nargs="+"),
    "name": _one("NAME", nargs="?"),
}
_FIT = "--kind --control --model --backend --set --drop-bad-rows --seed --quiet"
_AUDIT = f"{_FIT} --quick --gold --reference --trust-crowd --level --with --out --force"
_TEXTS = {
    "audit": "Rank or label the items, audit the annotators, and say what to ask next.",
    "report": "Report a table or a saved result: printed, or as a page to hand on.",
    "fit": "Fit a model and save the result, for other commands or arviz.from_netcdf.",
    "rank": "Print a leaderboard: ranks that hold at once, tiers, and votes still needed.",
    "suggest": "Say which questions, put to whom, would tell most of what is wanted.",
    "simulate": "Write judgements drawn from a known truth, and the truth as NAME-truth.json.",
    "models": "List kinds, models, back-ends and designs; of NAME its columns or settings.",
    "judges": "Compare judges with the truth, with people and with one another.",
    "serve": "Let people answer a campaign's questions in a browser, and programs by JSON.",
    "campaign start": "Start a campaign: who can be asked about what, and what for.",
    "campaign ask": "Hand out the next questions, printed or as a table that `tell` reads.",
    "campaign tell": "Take answers: of a table, of another tool, or asking for them one by one.",
    "campaign status": "Say where a campaign stands: answers, costs, and how sure the order is.",
    "campaign withdraw": "Take open questions back; an answer that comes later still counts.",
    "campaign consider": "Decide on questions that arrive one by one: ask each, or let it go.",
    "campaign export": "Write open questions for people to answer elsewhere, or all judgements.",
}
_TAKES = {
    "audit": f"{_AUDIT} --threshold --cost --drop --report --labels",
    "report": _AUDIT,
    "fit": f"{_FIT} --quick --update --out --force",
    "rank": f"{_FIT} --quick --level --unit --by --out --force",
    "suggest": f"{_FIT} --batch-size --size --again --out --force",
    "simulate": "--design --set --seed --out --quiet --force",
    "models": "name",
    "judges": f"{_FIT} --quick --people --gold --question --swapped --lengths --time --cost"
    " --target --card --level --out --force",
    "serve": "journal --texts --tokens --host --port --kind --quiet",
    "campaign start": f"{_FIT} --budget --until --size --batch-size --again --out",
    "campaign ask": "journal --number --annotator --budget --out --kind --quiet --force",
    "campaign tell": "journal file --annotator --from --people --correct --kind --quiet",
    "campaign status": "journal --quick --kind",
    "campaign withdraw": "journal ids --kind --quiet",
    "campaign consider": "journal file --rate --out --kind --quiet --force",
    "campaign export": "journal --to --texts --out --kind --quiet --force",
}
# What a command takes in another way than the others.
_POLICY = _several("NAME=VALUE", "of model, back-end or policy (target, quota)")
_JOURNAL = _one("CAMPAIGN.db", "the journal (campaign.db)", default=Path("campaign.db"))
_OF_COMMAND: dict[str, dict[str, dict[str, Any]]] = {
    "audit": {"--out": _one("DIR", "folder of all files", default=Path("raters-audit"))},
    "report": {"--out": _several("FILE", "write .html, .md, .txt or .json")},
    "fit": {"--out": _one("FILE", "the result, as netCDF", required=True)},
    "rank": {"--out": _one("FILE", "a table, or .html, .md, .txt, .json or .png")},
    "suggest": {"--set": _POLICY},
    "simulate": {"--out": _one("FILE", "the table", required=True)},
    "judges": {
        "--people": _one("A,B", "annotators who are people; all others are judges"),
        "--cost": _several("JUDGE=NUMBER", "price of a verdict (1)"),
        "--out": _several("FILE", "also write .md, .html, .json or .csv"),
    },
    "campaign start": {"--out": _JOURNAL, "--set": _POLICY},
    "campaign consider": {"file": _one("FILE")},
    "campaign status": {"--quick": _flag("fit nothing; only count")},
    "campaign export": {"--out": _one("FILE", "where to write it", required=True)},
}


class Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        option = message.removeprefix("argument ").partition(": expected one argument")
        advice = f"; write {option[0]}=NAME, such as the name of a column" if option[1] else ""
        raise SettingError(message + advice)


@contextmanager
def on_interrupt(handler: Callable[..., Any]) -> Iterator[None]:
    """Let an interrupt call `handler`."""
    if threading.current_thread() is not threading.main_thread():
        yield  # which alone may handle signals
        return
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def parser_of_all() -> ArgumentParser:
    """Parser of all commands; columns are what it does not know."""
    form = partial(RawDescriptionHelpFormatter, max_help_position=26, width=80)
    plain: dict[str, Any] = {"formatter_class": form, "allow_abbrev": False}
    parser = Parser("raters", description=ABOUT, usage="raters COMMAND [OPTIONS]", **plain)
    parser.add_argument("--version", action="version", version=f"raters {version('raters')}")
    parser.set_defaults(command="", parser=parser)
    several = parser.add_subparsers(prog="raters", title="commands", metavar="COMMAND")
    text = "Ask people, question by question; no answer is ever lost."
    campaign = several.add_parser("campaign", help=text, description=text, **plain)
    campaign.set_defaults(parser=campaign)
    of_campaign = campaign.add_subparsers(title="commands", metavar="COMMAND")
    for name, text in _TEXTS.items():
        words: dict[str, Any] = {"help": text, "description": text}
        if "--drop-bad-rows" in _TAKES[name]:
            words |= {"epilog": COLUMNS, "usage": f"raters {name} FILE --COLUMN NAME [OPTIONS]"}
        group = several if " " not in name else of_campaign
        one = group.add_parser(name.split()[-1], **words, **plain)
        one.set_defaults(command=name, parser=one)
        for option in _TAKES[name].split():
            settings = _OF_COMMAND.get(name, {}).get(option) or _OPTIONS[option]
            names = ("--quiet", "-q") if option == "--quiet" else (option,)
            one.add_argument(*names, **settings)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the value is the exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    # Matrices are small: further threads of NumPy's BLAS would only wait, at full load.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # Show as code points what its encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    try:
        with on_interrupt(_end):
            _run(*parser_of_all().parse_known_args(typed))
            sys.stdout.flush()
            return 0
    except SystemExit as end:  # after help
        return int(end.code or 0)
    except BrokenPipeError:
        # Python flushes standard output once more on its way out; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except RatersError as error:
        return _stop(error.worded(partial(_option, typed)))
    except MemoryError:
        return _stop("there is not enough memory for this; give less data, or smaller numbers")
    except OSError as error:
        return _stop(f"{error.filename or 'input or output'}: {error.strerror or error}")


def _end(*_: object) -> None:
    """End the process at once: an exception could be lost in a callback of JAX."""
    os.write(2, b"\nraters: interrupted\n")
    os._exit(130)


def _run(given: Namespace, words: list[str]) -> None:
    """Run a command, of which `words` are the columns, and the file that has them."""
    if not given.command:
        given.parser.print_help()
        return
    group, _, name = given.command.rpartition(" ")
    if "drop_bad_rows" in given:
        from raters.cli.reading import given_roles

        given.file, given.roles = given_roles(words)
        if sets := [text for text in given.set if "=" not in text]:
            given.roles["set"] = sets
        if given.file is None and not group:
            raise SettingError("name a FILE to read: a table, or RESULT.nc")
    elif words:
        raise SettingError(f"unknown: {' '.join(words)}; see {given.parser.prog} --help")
    if name not in ("simulate", "models"):
        from raters.program.compiled import keep_compiled

        keep_compiled()
    del given.parser
    module = group or ("campaign" if name == "serve" else "commands")
    getattr(import_module(f"raters.cli.{module}"), name)(given)


def _option(typed: Sequence[str], parameter: str) -> str:
    """The option of the command line in place of a parameter."""
    from raters.cli.reading import flags

    names = {"costs": "--cost", "at_least": "--until", "more": "--with"}
    names |= {"source": "--from"} | dict.fromkeys(("path", "table"), "the file")
    names |= {role: flag for flag, role in flags().items() if role not in names}
    name = parameter.partition(" ")[0]
    if any(word.startswith(f"{name}=") for word in typed):
        return f"--set {name}"
    if f"--{name}" in typed:
        return f"--{name}"
    if not name.isidentifier():  # Of columns that stand for something together.
        return parameter
    return names.get(name) or f"--{name.replace('_', '-')}"


def _stop(message: str) -> int:
    from raters.judgements.display import visible

    print(f"raters: {one_line(visible(' '.join(message.split())))}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
