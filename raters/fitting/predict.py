"""Probabilities of answers and of latent classes under each draw, also for judges who were not in
the fit; and answers drawn anew."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int
from scipy.special import ndtri

from raters.errors import DataError, SettingError, refuse
from raters.errors.validation import checked
from raters.fitting.result import check_data, draws_of, lead_coords, program_of
from raters.fitting.storage import worded
from raters.judgements.base import Judgements
from raters.judgements.names import counted, name_text, names_array, plural, shorten, warn_data
from raters.model import Model, Values, own_sites, read_by
from raters.program import Program, answer_probs, class_probs, class_weights, responsibility
from raters.program.densities import left_out_responsibility
from raters.program.vectors import factors

# Probabilities of classes are computed for up to this many numbers (1.6 GB).
_MOST = 400_000_000
# Judges of questions that name nobody.
_NOBODY = ("all",)
# Questions at a time.
_CHUNK = 1 << 16
AnswerDraws = Float[np.ndarray, "draw answer row"]


@checked
def predict(
    model: Model[Any], result: xr.DataTree, questions: Judgements | None = None
) -> xr.DataArray:
    """The probability that the first item wins, or of each true class, for each question and
    posterior draw.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    questions : Judgements, optional
        By default those that were fitted. Items, annotators and classes are matched by name.
        `Labels` may have new items, and choosers of `MixedLogit` may be new: their coefficients are
        integrated over the population, under each draw, at 64 points.

    Returns
    -------
    xarray.DataArray
        For comparisons, probabilities with axes ``chain``, ``draw``, ``comparison``, and the names
        ``first``, ``second``, ``by`` of each; for labels with ``item`` and ``true_class``; for
        other kinds the axis of their rows, or of the answers and the rows. Rows are those of the
        container: match them by their names.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> rt.predict(rt.BTL(), result).dims
    ('chain', 'draw', 'comparison')
    """
    program = program_of(model, result)
    values, sizes = draws_of(program, result)
    tables: Iterable[Values] = [values]
    asked, number = program.data, 1
    if questions is not None:
        questions = questions_of(program, questions)
        check_data(questions, "questions", model)
        known = program
        if new := newcomers(program, questions):
            tables, number = with_newcomers(program, values, len(new)), _VECTORS
            field = asked.names[asked.judge]
            longer = {field: (*asked.judges, *new)}  # They answered nothing.
            known = Program(program.model, dataclasses.replace(asked, **longer))
        asked = recode(known, questions, judges=False)
        if new and new != _NOBODY:
            whose = counted(len(new), program.data.judge)
            warn_data(worded("newcomers", whose=whose, names=shorten(new)))
    lead = lead_coords(result)
    of_unit = program.latent is not None and program.unit == asked.unit
    if of_unit and asked.answer_scale != "choice":
        return _class_table(program, asked, values, sizes, lead)
    table = sum((_answers(program, asked, each) for each in tables), np.zeros(())) / number
    coords: dict[str, Any] = {asked.row: np.arange(asked.num_rows)}
    if asked.answer_scale == "choice":  # In each set, of what it offers.
        row, position, names = asked.offers()
        names["by"], table = names.pop("annotator"), table[:, position, row]
        coords = {"offer": np.arange(len(row))}
    else:
        names = asked.question_names()
        if asked.success is not None:
            table = table[:, asked.listed_answers().tolist().index(asked.success[1])]
        else:
            answers, table = asked.answer_table(table)
            coords = {"answer": answers} | coords
    dims = (*lead, *coords)
    coords |= {name: (dims[-1], column) for name, column in names.items()}
    shape = (*sizes, *table.shape[1:])
    return xr.DataArray(table.reshape(shape), lead | coords, dims, name="probability")


def _answers(program: Program[Any], asked: Any, values: Values) -> AnswerDraws:
    """Probabilities of the answers to each row under each draw."""
    # A row with a count is one question.
    of_unit = program.latent is not None and program.unit != asked.unit
    known = jax.tree.map(jnp.asarray, program.data) if of_unit else None
    pieces = []
    for piece in asked.chunks(_CHUNK):
        unit = None if known is None else piece.codes(program.unit)
        bare = dataclasses.replace(piece, **{piece.answer: None, "count": None})
        pieces.append(np.asarray(_answer_table(program.model, bare, known, unit, values)))
    return np.concatenate(pieces, axis=2)


def _class_table(
    program: Program[Any], asked: Any, values: Values, sizes: tuple[int, int], lead: dict[str, Any]
) -> xr.DataArray:
    """Probabilities of each latent class of each unit that is asked about."""
    latent = program.latent
    assert latent is not None
    if not asked.has_answers:
        problem = "has no answers to infer the class from"
        expected = "units without any answer may be among others with some"
        refuse("questions", problem=problem, expected=expected, error=DataError)
    num_draws = sizes[0] * sizes[1]
    if (total := num_draws * asked.num_units * latent.size) > _MOST:
        numbers = {"classes": latent.size, "units": asked.num_units, "of": plural(latent.unit)}
        numbers |= {"draws": num_draws, "total": total, "group": latent.group}
        raise SettingError(worded("many_class_probs", **numbers))
    table = np.asarray(class_probs(program.model, jax.tree.map(jnp.asarray, asked), values))
    names = {latent.name: latent.names} | asked.coords
    coords = lead | {axis: names_array(names[axis]) for axis in latent.axes}
    table = table.reshape(*sizes, *table.shape[1:])
    return xr.DataArray(table, coords, (*lead, *latent.axes), name="probability")


@partial(jax.jit, static_argnums=0)
def _answer_table(
    model: Model[Any], asked: Any, known: Any, unit: Any, draws: Values
) -> Float[Array, "draw answer row"]:
    """Probability of each answer, with the class of each row's unit summed out."""

    def one(values: Values) -> Float[Array, "answer row"]:
        probs = answer_probs(model, asked, values)  # (class, answer, row)
        if known is None and len(probs) == 1:
            return probs[0]
        if known is None:
            return (class_weights(model, asked, values) * probs).sum(0)
        share = responsibility(model, known, values)[unit].T  # (class, row)
        return (share[:, None] * probs).sum(0)

    return jax.lax.map(one, draws)


def questions_of(program: Program[Any], questions: Any) -> Any:
    """Questions as the model takes them, about sites of the shapes that were fitted."""
    read = read_by(program.model, questions, program.data)
    if read is questions:
        return questions
    fitted = {name: site.shape for name, site in program.sites.items()}
    shapes = {name: site.shape for name, site in Program(program.model, read).sites.items()}
    if other := [name for name in fitted if shapes.get(name) != fitted[name]]:
        given, before = shapes.get(other[0]), fitted[other[0]]
        problem = f"gives {other[0]!r} the shape {given}, and it was fitted with {before}"
        expected = "ask about rows of the same groups and columns; where there is an entry for each"
        expected += " row, about the rows that were fitted"
        refuse("questions", problem=problem, expected=expected, error=DataError)
    return read


def recode(program: Program[Any], questions: Any, *, judges: bool = True) -> Any:
    """Questions in the codes of the fitted data."""
    fitted = program.data
    answers = {fitted.axes[fitted.answer]} if fitted.answer in fitted.axes else set()
    unit = {program.unit} if program.latent is not None and program.unit != fitted.unit else set()
    latent = set() if program.latent is None else {program.latent.name}
    known = {fitted.judge} if judges else set()
    axes = known | answers | unit | latent | set(program.axes)
    of_features = {axis for axis in fitted.names if not fitted.code_columns(axis)}
    recoded = questions.recoded(fitted, sorted(axes & set(fitted.names) - of_features))
    used = of_features & program.axes
    if not used and program.model.why_not(fitted.without_features()) is None:
        return recoded.without_features()
    if fitted.pair is not None and fitted.axes[fitted.pair[0]] in program.axes:
        recoded = recoded.at_equal_features(fitted)
    return recoded.features_of(fitted)


# ---------------------------------------------------------------- judges who were not in the fit

# Vectors of a newcomer under each draw.
_VECTORS = 64


def newcomers(program: Program[Any], questions: Any) -> tuple[Any, ...]:
    """Return the judges of questions who were not in the fit, where they can be answered for."""
    if not own_sites(program.model):
        return ()
    judge = program.data.judge
    known = set(map(name_text, program.data.coords[judge]))
    names = tuple(questions.coords[judge])
    used = np.unique(questions.codes(judge))
    return tuple(names[code] for code in used if name_text(names[code]) not in known)


def with_newcomers(program: Program[Any], draws: Values, number: int) -> Iterator[Values]:
    """Yield draws in which newcomers have vectors, spread evenly over the population."""
    from scipy.stats import qmc

    own = own_sites(program.model)
    widths = [draws[name].shape[-1] for name in own]
    row = jax.tree.map(jnp.asarray, program.data.first_unit())
    factor = np.asarray(_factors(program.model, own, row, draws))
    rng, size = np.random.default_rng(0), factor.shape[-1]
    base = qmc.Sobol(size, rng=rng).random(_VECTORS)
    shift = rng.random((len(factor), size))
    for point in base:
        white = ndtri(np.clip((point + shift) % 1.0, 1e-9, 1 - 1e-9))
        vector = np.einsum("dpq,dq->dp", factor, white)
        parts = np.split(vector, np.cumsum(widths)[:-1], axis=1)
        yield draws | {
            name: np.concatenate([draws[name], np.repeat(part[:, None], number, axis=1)], axis=1)
            for name, part in zip(own, parts, strict=True)
        }


@partial(jax.jit, static_argnums=(0, 1))
def _factors(
    model: Model[Any], own: tuple[str, ...], row: Any, draws: Values
) -> Float[Array, "draw entry entry"]:
    """Return the Cholesky factors of the covariance of a vector under each draw."""
    return jax.lax.map(lambda values: factors(model, own, row, values), draws)


# ---------------------------------------------------------------- answers drawn anew

AnswerTable = Float[np.ndarray, "answer row"]

# Numbers that are computed at a time.
_PIECE = 20_000_000


class AnswerProbs(NamedTuple):
    """Probabilities of the answers of each row under one draw."""

    probs: AnswerTable
    classes: Int[np.ndarray, " unit"] | None


def single(data: Judgements) -> Any:
    """The judgements without rows of count 0; with one row each, unless a row holds their sum."""
    real = data.unpadded()
    return real if real.summed else dataclasses.replace(real._each(), count=None)


def source_rows(data: Judgements) -> Int[np.ndarray, " judgement"]:
    """Row of `data` that each row of `single` is taken from."""
    rows = np.arange(data.num_rows)
    if data.count is None:
        return rows
    count = np.asarray(data.count).round().astype(np.int64)
    # Half a vote is possible in a sum and not in a count.
    return rows[count > 0] if data.summed else np.repeat(rows, count)


def probs_of_draws(
    program: Program[Any], draws: Values, seed: int, *, left_out: bool = False
) -> Iterator[AnswerProbs]:
    """Probabilities of the answers of each row, one draw after the other."""
    data = program.data
    latent = program.latent is not None
    known = jax.tree.map(jnp.asarray, data)
    unit = np.asarray(data.codes(program.unit)) if latent else None
    num_draws = len(next(iter(draws.values())))
    keys = jax.random.split(jax.random.key(seed), num_draws)
    size = max(1, _PIECE // max(1, data.num_rows * len(data.answers())))
    for start in range(0, num_draws, size):
        part = {name: value[start : start + size] for name, value in draws.items()}
        probs, classes = _tables(
            program.model, left_out, known, unit, part, keys[start : start + size]
        )
        probs, classes = np.asarray(probs, np.float64), np.asarray(classes)
        # Single precision leaves sums of probabilities a little off 1.
        probs /= np.maximum(probs.sum(1, keepdims=True), np.finfo(float).tiny)
        for table, drawn in zip(probs, classes, strict=True):
            yield AnswerProbs(table, drawn if latent and not left_out else None)


@partial(jax.jit, static_argnums=(0, 1))
def _tables(
    model: Model[Any], left_out: bool, data: Any, unit: Any, draws: Values, keys: Array
) -> tuple[Float[Array, "draw answer row"], Int[Array, "draw unit"]]:
    asked = dataclasses.replace(data, count=None)

    def one(part: tuple[Values, Any]) -> tuple[Any, Any]:
        values, key = part
        probs = answer_probs(model, asked, values)  # (class, answer, row)
        if unit is None:
            return probs[0], jnp.zeros(0, int)
        if left_out:
            share = left_out_responsibility(model, data, values).T  # (class, row)
            return (share[:, None] * probs).sum(0), jnp.zeros(0, int)
        classes = jax.random.categorical(key, jnp.log(responsibility(model, data, values)))
        return jnp.take_along_axis(probs, classes[unit][None, None], 0)[0], classes

    return jax.lax.map(one, (draws, keys))


def answer_counts(data: Judgements) -> AnswerTable:
    """Number of judgements of each row with each answer."""
    data.check_listed()
    answers = np.asarray(data.answers(), float)
    outcome, number = (np.asarray(x, float) for x in (getattr(data, data.answer), data.weight))
    if not data.summed:
        return np.asarray(outcome == answers[:, None], float)
    if outcome.ndim > 1:
        return outcome.T
    if len(answers) != 2:
        raise SettingError(worded("sums", kind=type(data).__name__, answers=len(answers)))
    first = (outcome - number * answers[1]) / (answers[0] - answers[1])
    return np.stack([first, number - first])


def replicated(data: Judgements, probs: AnswerTable, rng: np.random.Generator) -> AnswerTable:
    """Numbers of judgements with each answer, drawn."""
    number = np.asarray(data.weight, float)
    if data.summed:
        drawn = rng.multinomial(number.round().astype(np.int64), np.clip(probs.T, 0, 1))
        return np.asarray(drawn.T, float)
    below = np.cumsum(probs, 0)[:-1] < rng.random(probs.shape[1])
    return np.asarray(below.sum(0) == np.arange(len(probs))[:, None], float)
