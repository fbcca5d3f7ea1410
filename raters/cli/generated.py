"""Options generated from signatures of readers and fields of models and back-ends."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pandas as pd
import typer

from raters import inference
from raters.errors import SettingError
from raters.inference import Backend
from raters.judgements.names import check_once, name_text
from raters.kinds import Kind
from raters.model import Model

NOTHING = inspect.Parameter.empty


@dataclass(frozen=True)
class Meaning:
    """An option in the words of one reader, model or back-end."""

    owner: str
    annotation: Any
    default: Any
    help: str


@dataclass(frozen=True)
class GeneratedOption:
    """One option, with a meaning for each owner that has a parameter of its name."""

    name: str
    key: str
    flag: str
    panel: str
    meanings: tuple[Meaning, ...]

    @property
    def owners(self) -> tuple[str, ...]:
        """Names of those who have it, each once."""
        return tuple(dict.fromkeys(meaning.owner for meaning in self.meanings))

    def parameter(self) -> inspect.Parameter:
        """The parameter that Typer reads; None stands for an option that is not given."""
        form, choices = self._form()
        names = [f"{self.flag}/--no-{self.flag[2:]}"] if form is bool else [self.flag]
        hint = typer.Option(
            *names,
            help=self.help(),
            rich_help_panel=self.panel,
            show_default=False,
            metavar=None if form in (bool, int, float) or choices else self._metavar(),
        )
        wanted: Any = (
            Literal[choices] if choices else list[str] if self._one_column or self._names else form
        )
        return inspect.Parameter(
            self.key,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[wanted | None, hint],
        )

    def value(self, parsed: Mapping[str, Any]) -> Any:
        """Value given for the option; None where there is none."""
        given = parsed[self.key]
        if self._names and given:
            return ",".join(given)
        if not self._one_column or not given:
            return given or None if isinstance(given, list) else given
        if len(given) > 1:
            raise SettingError(
                f"{self.flag} takes one column, and was given {' and '.join(map(repr, given))};"
                f" give it once: {self.flag} {given[0]}"
            )
        return given[0]

    @property
    def _one_column(self) -> bool:
        return self._of_columns and all(
            shape_of(meaning.annotation) == _COLUMN for meaning in self.meanings
        )

    @property
    def _names(self) -> bool:
        return all(shape_of(meaning.annotation) == _GROUP for meaning in self.meanings)

    def _form(self) -> tuple[Any, tuple[str, ...]]:
        """Type of the option, and the choices of all owners where each offers some."""
        shapes = [shape_of(meaning.annotation) for meaning in self.meanings]
        if all(shape.choices and not shape.numeric for shape in shapes):
            return str, tuple(dict.fromkeys(word for shape in shapes for word in shape.choices))
        forms = {list[str] if shape.several else shape.form for shape in shapes}
        return (forms.pop() if len(forms) == 1 else str), ()

    def _metavar(self) -> str:
        shape = shape_of(self.meanings[0].annotation)
        return "|".join([*(["NUMBER"] if shape.numeric else []), *shape.choices]) or shape.metavar

    def help(self) -> str:
        """First sentences of the owners' documentation, and the defaults."""
        sentences: dict[str, list[str]] = {}
        for meaning in self.meanings:
            if not (shape_of(meaning.annotation).named and self._first_of(meaning) is not meaning):
                text = meaning.help + _shown_default(meaning.default)
                sentences.setdefault(text, []).append(meaning.owner)
        if len(sentences) == 1:
            return next(iter(sentences)) + (
                "" if self._of_columns else f" [{', '.join(self.owners)}]"
            )
        return " ".join(
            f"{', '.join(dict.fromkeys(owners))}: {text}" for text, owners in sentences.items()
        )

    @property
    def _of_columns(self) -> bool:
        return self.panel.startswith("Columns")

    def _first_of(self, meaning: Meaning) -> Meaning:
        """The first meaning that the same owner gives."""
        return next(one for one in self.meanings if one.owner == meaning.owner)


def _shown_default(default: Any) -> str:
    """The default in brackets, where it says something."""
    if default is NOTHING or default is None or default is False or default == ():
        return ""
    shown = {True: "yes"}.get(default, default) if isinstance(default, bool) else default
    return f" (default: {shown})"


# ---------------------------------------------------------------- annotations


class Shape(typing.NamedTuple):
    """A parameter as options see it: its type, words to choose from, and how values are written."""

    form: Any
    choices: tuple[str, ...] = ()
    metavar: str = "TEXT"
    several: bool = False
    numeric: bool = False

    @property
    def named(self) -> bool:
        """True if it names columns, or what is in them."""
        return self.metavar in ("COLUMN", "A,B,...")


_UNKNOWN = Shape(None)
_COLUMN, _COLUMNS = Shape(str, metavar="COLUMN"), Shape(str, metavar="COLUMN", several=True)
_NAMES = Shape(str, metavar="A,B,...")
# A table of its own.
_FILE = Shape(str, metavar="FILE")
# Names that a model knows, and several groups of them.
_GROUP, _GROUPS = Shape(str, metavar="A,B"), Shape(str, metavar="A,B", several=True)


def shape_of(annotation: Any) -> Shape:
    """Form in which a parameter of this annotation is written; `form` is None for one that cannot
    be."""
    parts = [part for part in _alternatives(annotation) if part is not type(None)]
    choices = tuple(
        word
        for part in parts
        if typing.get_origin(part) is Literal
        for word in typing.get_args(part)
    )
    rest = [part for part in parts if typing.get_origin(part) is not Literal]
    if len(rest) > 1 or not all(isinstance(word, str) for word in choices):
        return _UNKNOWN
    if not rest:
        return Shape(str, choices) if choices else _UNKNOWN
    (part,) = rest
    if choices:
        return Shape(str, choices, numeric=True) if part in (int, float) else _UNKNOWN
    if part in (bool, int, float):
        return Shape(part, numeric=part is not bool)
    return _collection(part)


def _collection(part: Any) -> Shape:
    """Text, names, columns, or a mapping."""
    origin, arguments = typing.get_origin(part), typing.get_args(part)
    if part is str:
        return _COLUMN
    if part is pd.DataFrame:
        return _FILE
    if origin is Sequence and arguments == (str,):
        return _COLUMNS
    if origin is tuple and arguments[-1:] == (...,):
        return {str: _GROUP, tuple[str, ...]: _GROUPS}.get(arguments[0], _UNKNOWN)
    if origin is Mapping:
        several = arguments[-1] == tuple[str, str] or Sequence[str] in _alternatives(arguments[-1])
        pairs = "NAME=COLUMN,COLUMN" if several else "NAME=VALUE"
        return Shape(str, metavar=pairs, several=True)
    return _NAMES if origin is Iterable else _UNKNOWN


# A name and what it stands for, as one would write them.
_EXAMPLES = {"NAME=COLUMN,COLUMN": "length=length_a,length_b", "NAME=VALUE": "bus=bus_runs"}


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return typing.get_args(annotation)
    return (annotation,)


def is_column(annotation: Any) -> bool:
    """True if a parameter is the name of a column, or several."""
    return shape_of(annotation) in (_COLUMN, _COLUMNS)


def converted(given: Any, annotation: Any, name: str) -> Any:
    """Typed text, as the parameter of this name takes it from one owner."""
    from raters.cli.tables import names_in, read_table

    shape = shape_of(annotation)
    if shape is _FILE:
        return read_table(Path(given))
    if shape in (_GROUP, _GROUPS):
        groups = [given] if shape is _GROUP else given
        named = tuple(tuple(map(name_text, names_in(text))) for text in groups)
        return named[0] if shape is _GROUP else named
    if shape.several:
        if shape.metavar == "COLUMN":
            return list(given)
        pairs = [_pair(text, shape, name) for text in given]
        check_once((key for key, _ in pairs), name)
        return dict(pairs)
    if shape is _NAMES:
        return names_in(given)
    if shape.numeric and isinstance(given, str) and given not in shape.choices:
        try:
            return int(given) if int in _alternatives(annotation) else float(given)
        except ValueError:
            return given
    return given


def _pair(text: str, shape: Shape, parameter: str) -> tuple[str, Any]:
    """A name and what it stands for; columns are separated by commas."""
    name, _, value = text.partition("=")
    if not (name.strip() and value.strip()):
        raise SettingError(
            parameter=parameter,
            value=text,
            problem="does not say which name stands for what",
            expected=f"write {shape.metavar}, such as {_EXAMPLES[shape.metavar]}",
        )
    several = "," in shape.metavar
    return name.strip(), tuple(part.strip() for part in value.split(",")) if several else value


# ---------------------------------------------------------------- documentation

_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*)(?: : .*)?$")


def parameter_docs(documented: Any) -> dict[str, str]:
    """First sentence of each parameter in a numpydoc docstring."""
    lines = iter((inspect.getdoc(documented) or "").splitlines())
    for line in lines:
        if line.strip() == "Parameters":
            next(lines, "")
            break
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        if set(line.strip()) == {"-"}:
            break
        if line and not line[0].isspace():
            current = []
            if entry := _ENTRY.match(line):
                texts |= dict.fromkeys(entry["names"].split(", "), current)
        elif line.strip():
            current.append(line.strip())
    return {name: _first_sentence(" ".join(text)) for name, text in texts.items()}


def _first_sentence(text: str) -> str:
    plain = re.sub(r":math:`([^`]*)`|``([^`]*)``|`([^`]*)`", r"\1\2\3", text)
    return re.split(r"(?<=[^.]\.)\s|:\s*$|: \{", plain, maxsplit=1)[0].strip()


# ---------------------------------------------------------------- lists of options


def dashed(name: str) -> str:
    """Name of a class or parameter on the command line: ``ExtendedBTL`` is ``extended-btl``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return words.replace("_", "-").lower()


def model_names(kinds: Iterable[Kind]) -> dict[str, type[Model[Any]]]:
    """Models of all kinds by their names on the command line."""
    return {dashed(model.__name__): model for kind in kinds for model in kind.models}


def backend_names() -> dict[str, type[Backend]]:
    """Back-ends by their names on the command line: those of the classes without ``PG``."""
    classes = [getattr(inference, name) for name in inference.__all__]
    concrete = [
        cls
        for cls in classes
        if isinstance(cls, type) and issubclass(cls, Backend) and cls is not Backend
    ]
    names = {cls.__name__.removeprefix("PG").lower(): cls for cls in concrete}
    return {name: names[name] for name in sorted(names, key=lambda name: (name != "gibbs", name))}


def keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Keyword-only parameters of a function, with annotations as objects."""
    every = inspect.signature(function, eval_str=True).parameters.values()
    return {one.name: one for one in every if one.kind is inspect.Parameter.KEYWORD_ONLY}


def field_types(cls: type) -> dict[str, tuple[Any, Any]]:
    """Annotation and default of each field of a dataclass."""
    hints = typing.get_type_hints(cls)
    return {
        field.name: (
            hints[field.name],
            NOTHING if field.default is dataclasses.MISSING else field.default,
        )
        for field in dataclasses.fields(cls)
        if field.init and typing.get_origin(hints[field.name]) is not ClassVar
    }


def readers_of(kind: Kind) -> list[tuple[Callable[..., Any], Mapping[str, Any]]]:
    """Functions that read a table of this kind and the steps that follow them, each with the
    parameters that it shares with the one before."""
    functions: list[tuple[Callable[..., Any], Mapping[str, Any]]] = []
    for reader in kind.readers:
        functions.append((reader.read, {}))
        functions += [(step, keywords(reader.read)) for step in reader.steps]
    return functions


def column_options(kinds: Iterable[Kind], taken: Iterable[str] = ()) -> tuple[GeneratedOption, ...]:
    """Options from the keyword parameters of all readers."""
    by_name: dict[str, list[Meaning]] = {}
    for kind in kinds:
        for function, shared in readers_of(kind):
            docs = parameter_docs(function)
            for name, parameter in keywords(function).items():
                if name in shared:
                    continue
                text = docs.get(name) or _spelled(name)
                meaning = Meaning(kind.name, parameter.annotation, parameter.default, text)
                by_name.setdefault(name, []).append(meaning)
    return _options(by_name, "Columns", taken)


def model_options(
    models: Mapping[str, Any], taken: Iterable[str] = ()
) -> tuple[GeneratedOption, ...]:
    """Options from the fields of models: classes, or instances that hold the defaults."""
    return _options(_fields(models), "Model", taken)


def backend_options(taken: Iterable[str] = ()) -> tuple[GeneratedOption, ...]:
    """Options from the fields of the back-ends."""
    return _options(_fields(backend_names()), "Fit", taken)


def _fields(owners: Mapping[str, Any]) -> dict[str, list[Meaning]]:
    """Fields of dataclasses, by name."""
    by_name: dict[str, list[Meaning]] = {}
    for owner, thing in owners.items():
        cls = thing if isinstance(thing, type) else type(thing)
        docs = parameter_docs(cls)
        for name, (annotation, default) in field_types(cls).items():
            default = default if thing is cls else getattr(thing, name)
            meaning = Meaning(owner, annotation, default, docs.get(name) or _spelled(name))
            by_name.setdefault(name, []).append(meaning)
    return by_name


def _spelled(name: str) -> str:
    """Help of a parameter without documentation: its name in words."""
    words = name.replace("_", " ")
    return f"{'Number of' + words[3:] if words.startswith('num ') else words.capitalize()}."


def _options(
    by_name: Mapping[str, list[Meaning]], panel: str, taken: Iterable[str]
) -> tuple[GeneratedOption, ...]:
    """Options by name; one whose name a command has already gets its owner's name in front."""
    taken, options = set(taken), []
    for name, every in by_name.items():
        meanings = tuple(one for one in every if shape_of(one.annotation).form)
        if not meanings:
            continue
        key, words = name, name
        if any(shape_of(one.annotation).several for one in meanings):
            words = name.removesuffix("s") if name.removesuffix("s") not in by_name else name
        if key in taken:
            owner = meanings[0].owner if len({one.owner for one in meanings}) == 1 else panel
            key = words = f"{owner.lower().replace('-', '_')}_{name}"
        owners = {one.owner for one in meanings}
        where = f"{panel} of {owners.pop()}" if panel == "Columns" and len(owners) == 1 else panel
        options.append(GeneratedOption(name, key, "--" + dashed(words), where, meanings))
    return tuple(options)
