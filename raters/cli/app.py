"""Commands and options. Modules that compute are imported by the command that needs them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import tomllib
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from raters.errors import RatersError, SettingError, one_line

_TABLE = tomllib.loads(files("raters.cli").joinpath("options.toml").read_text("utf-8"))
ABOUT, COLUMNS = _TABLE["about"], _TABLE["columns"]
# Types of values by the name of the type, or by what stands for a value.
_TYPES = {"int": int, "float": float}
_TYPES |= dict.fromkeys(("FILE", "DIR", "CAMPAIGN.db", "RESULT.nc"), Path)


def _argument(help: str | None = None, several: bool = False, **settings: Any) -> dict[str, Any]:
    if "metavar" not in settings:
        return {"action": "store_true", "help": help}
    settings["type"] = _TYPES.get(settings.get("type", settings["metavar"]), str)
    if several:
        return settings | {"action": "append", "default": [], "help": f"{help} (several)"}
    return settings | {"help": help}


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
    for name, command in _TABLE["commands"].items():
        takes = command["takes"].replace("FIT", _TABLE["fit"]).split()
        words: dict[str, Any] = {"help": command["help"], "description": command["help"]}
        if "--drop-bad-rows" in takes:
            words |= {"epilog": COLUMNS, "usage": f"raters {name} FILE --COLUMN NAME [OPTIONS]"}
        group = several if " " not in name else of_campaign
        one = group.add_parser(name.split()[-1], **words, **plain)
        one.set_defaults(command=name, parser=one)
        for option in takes:
            names = ("--quiet", "-q") if option == "--quiet" else (option,)
            one.add_argument(*names, **_argument(**command.get(option, _TABLE["options"][option])))
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
