"""The command line: what is asked for, errors in one line, compiled functions kept."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from raters.cli import ended_by_interrupt, interrupts_kept
from raters.errors import RatersError, one_line

ABOUT = (
    "Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask"
    " next."
)
EPILOG = (
    "Compiled functions are kept between runs in a folder `raters` of the user's cache directory;"
    " JAX_COMPILATION_CACHE_DIR names another folder."
)
COMMANDS = {
    "audit": "Rank or label the items, audit the annotators, and say what to ask next.",
    "agreement": "Measure how often annotators agree, and how far beyond chance, without a model.",
    "types": "Find types of annotators who want different things: what each prefers, and who is of"
    " which.",
    "check": "Find where a model does not fit the judgements, and which one would mend it.",
    "fit": "Fit a model and save the result, for `raters suggest` or for arviz.from_netcdf.",
    "joint": "Fit one model of several kinds of judgement, such as labels and votes of the same"
    " people.",
    "suggest": "Say which questions, put to whom, would tell most of what is wanted.",
    "campaign": "Ask people, question by question: what to ask next, whom, and when to stop. No"
    " answer is lost in a crash.",
    "simulate": "Write judgements drawn from a known truth, and the truth beside them as"
    " NAME-truth.json.",
}
# Options that take a path.
_PATHS = ("--out", "--report", "--texts")
CONTEXT = {"help_option_names": ["-h", "--help"]}
# Words that are taken for the value of a switch.
_YES, _NO = frozenset(("yes", "true", "on", "1")), frozenset(("no", "false", "off", "0"))
# Signs in tables and sentences, for consoles that lack them.
_SIGNS = {"…": "...", "–": "-", "—": "-", "−": "-", "·": "|", "→": "->", "≥": ">=", "½": "1/2"}
# Typer has carried its own copy of click since 0.26, so the base class of usage errors is found
# through Typer.
UsageError: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"raters {version('raters')}")
        raise typer.Exit


def _raters(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def command_line(arguments: Sequence[str]) -> typer.Typer:
    """The application; only the command that is asked for is given its options."""
    app = typer.Typer(add_completion=False, context_settings=CONTEXT, help=ABOUT, epilog=EPILOG)
    app.callback(invoke_without_command=True)(_raters)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    if asked in COMMANDS:
        from raters.cli.commands import add_command

        keep_compiled()
        add_command(app, asked, arguments)
    for name, text in COMMANDS.items():
        if name != asked:
            app.command(name, help=text)(_listed)
    return app


def _listed() -> None:
    """A command that is listed in the help, and not asked for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the value is the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None:  # Closed by the caller: to print is to be an error.
        sys.stdout = Path(os.devnull).open()  # noqa: SIM115
    _ready_streams()
    if flag := _without_path(given):
        return _stop(f"{flag} is empty; name a file or a folder: {flag} NAME", 2)
    try:
        with ended_by_interrupt():
            command = typer.main.get_command(command_line(given))
        with interrupts_kept(), command.make_context("raters", given) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, typer.Abort) as stop:
        return _stop("; ".join(filter(None, ["interrupted", str(stop)])), 130)
    except (BrokenPipeError, SystemExit) as end:
        # Rich ends the program when it meets a closed pipe.
        if not isinstance(end if isinstance(end, OSError) else end.__context__, BrokenPipeError):
            raise
        # Python flushes standard output once more on its way out; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UsageError as error:
        return _stop(usage_sentence(error, given), 2)
    except RatersError as error:
        return _stop(error.worded(lambda name: f"--{name.replace('_', '-')}"), 2)
    except MemoryError:
        return _stop("there is not enough memory for this; give less data, or smaller numbers", 2)
    except OSError as error:
        return _stop(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)
    return 0


def _without_path(arguments: Sequence[str]) -> str | None:
    """The option of a path that is given an empty text, which is the current folder as a path."""
    for word, value in pairwise([*arguments, "end"]):
        flag, sign, joined = word.partition("=")
        if flag in _PATHS and (not joined if sign else not value):
            return flag
    return None


def _ready_streams() -> None:
    """Let output show what its encoding lacks in ASCII, and a closed stream be an empty one."""
    codecs.register_error("raters", _in_ascii)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="raters")


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Characters that an encoding lacks: signs by others, letters by their number."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    known = (_SIGNS.get(one, one).encode("ascii", "backslashreplace") for one in lacking)
    return b"".join(known).decode("ascii"), error.end


def keep_compiled() -> None:
    """Let JAX keep compiled functions between runs, in the user's cache directory."""
    import jax
    from platformdirs import user_cache_path

    if jax.config.jax_compilation_cache_dir is not None:
        return
    folder = Path(user_cache_path("raters", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    set_value: Any = jax.config.update
    set_value("jax_compilation_cache_dir", str(folder))
    set_value("jax_persistent_cache_min_compile_time_secs", 0.0)


def usage_sentence(error: Any, given: Sequence[str]) -> str:
    """Say what is wrong with arguments that cannot be parsed."""
    return _value_of_switch(error, given) or _usage(error)


def _usage(error: Any) -> str:
    """Problem with the arguments; Typer has pydantic check them, which would put the class of
    the error first."""
    checks: list[Any] = getattr(error.__cause__, "errors", list)()
    for reason in (check.get("ctx", {}).get("error") for check in checks):
        error.message = str(reason or error.message)
    return str(error.format_message())


def _value_of_switch(error: Any, given: Sequence[str]) -> str | None:
    """Sentence on a switch that was given a value, as in ``--quiet yes``, where that is the
    error."""
    if error.ctx is None or "extra argument" not in str(error.message):
        return None
    opposite: dict[str, str | None] = {}
    for parameter in error.ctx.command.params:
        if getattr(parameter, "is_flag", False):
            on, off = parameter.opts, parameter.secondary_opts
            opposite |= dict.fromkeys(on, next(iter(off), None)) | dict.fromkeys(off, on[0])
    extra = str(error.message).rpartition(" (")[2].rstrip(").").split()
    for switch, word in pairwise(given):
        if switch not in opposite or word not in extra or word.lower() not in _YES | _NO:
            continue
        meant = switch if word.lower() in _YES else opposite[switch]
        line = f"write {meant} alone" if meant else f"leave {switch} out"
        return f"{switch} is given the value {word!r}, and takes none; {line}"
    return None


def _stop(message: str, code: int) -> int:
    text = " ".join(message.split())
    if not (text.isascii() and text.isprintable()):
        from raters.judgements.display import visible

        text = visible(text)
    print(f"raters: {one_line(text)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
