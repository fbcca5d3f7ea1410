"""Prediction: probabilities of answers, and of latent classes, for each question and draw."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from raters.errors import DataError, DataWarning, SettingError, refuse
from raters.errors.validation import checked
from raters.fitting.newcomers import joined_by, mean_of, newcomers, with_newcomers
from raters.fitting.result import check_data, draws_of, lead_coords, program_of
from raters.judgements.base import Judgements
from raters.judgements.names import names_array, plural, shorten
from raters.model import Model, Values, read_by
from raters.program import Program, answer_probs, class_probs, class_weights, responsibility

# Probabilities of classes are computed for up to this many numbers (1.6 GB).
_MOST = 400_000_000
# Judges of questions that name nobody.
_NOBODY = ("all",)
# Questions at a time.
_CHUNK = 1 << 16


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
    >>> rt.predict(rt.BTL(), result).sizes["draw"]
    1000
    """
    program = program_of(model, result)
    values, sizes = draws_of(program, result)
    tables: Iterable[Values] = [values]
    if questions is None:
        asked = program.data
    else:
        questions = questions_of(program, questions)
        check_data(questions, "questions", model)
        if new := newcomers(program, questions):
            tables = with_newcomers(program, values, len(new))
            asked = recode(joined_by(program, new), questions, judges=False)
        else:
            asked = recode(program, questions, judges=False)
        if new and new != _NOBODY:
            judges = plural(program.data.judge) if len(new) > 1 else program.data.judge
            warnings.warn(
                f"no choices of {len(new):,} {judges} of the questions were fitted"
                f" ({shorten(new)}): they are answered for by the population; where a name is"
                " misspelt, correct it",
                DataWarning,
                stacklevel=3,
            )
    lead = lead_coords(result)
    if program.latent is not None and program.unit == asked.unit and not asked.together:
        return _class_table(program, asked, values, sizes, lead)
    table = mean_of(_answers(program, asked, each) for each in tables)
    names = {name: (asked.row, column) for name, column in asked.question_names().items()}
    coords = {**lead, asked.row: np.arange(asked.num_rows), **names}
    if asked.success is not None:
        table = table[:, asked.listed_answers().tolist().index(asked.success[1])]
        dims: tuple[str, ...] = ("chain", "draw", asked.row)
    else:
        dims = ("chain", "draw", "answer", asked.row)
        coords["answer"], table = asked.answer_table(table)
    shape = (*sizes, *table.shape[1:])
    return xr.DataArray(table.reshape(shape), dims=dims, coords=coords, name="probability")


def _answers(
    program: Program[Any], asked: Any, values: Values
) -> Float[np.ndarray, "draw answer row"]:
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
        raise SettingError(
            f"probabilities of {latent.size} classes of {asked.num_units} {plural(latent.unit)}"
            f" under {num_draws} draws are {total:.2g} numbers; thin the draws first, as in"
            " result.sel(draw=result['posterior']['draw'][::10]), or read the mean over draws from"
            f" result['{latent.group}']['responsibility']"
        )
    table = np.asarray(class_probs(program.model, jax.tree.map(jnp.asarray, asked), values))
    names = {latent.name: latent.names} | asked.coords
    return xr.DataArray(
        table.reshape(*sizes, *table.shape[1:]),
        dims=("chain", "draw", *latent.axes),
        coords=lead | {axis: names_array(names[axis]) for axis in latent.axes},
        name="probability",
    )


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
