"""Suggestions of the questions to ask next, and their annotators."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Shaped

from raters.acquisition.policy import Policy, Target, check_names
from raters.acquisition.posterior import Posterior
from raters.acquisition.scores import mean
from raters.errors import DataWarning, refuse
from raters.errors.validation import checked, whole
from raters.fitting.predict import recode
from raters.fitting.result import check_data, check_one_kind
from raters.judgements.base import Judgements
from raters.judgements.names import names_array
from raters.model import Model

# Below it a score is rounding: the answer informs about nothing under any draw.
_NOTHING = 1e-10
# Scores are estimated from draws: the highest of many scores of 200 draws is often noise. So all
# draws are used while there are no more probabilities of answers than this, and always some.
_PROBABILITIES, _MOST_DRAWS, _FEWEST_DRAWS = 20_000_000, 4000, 200


@checked
def suggest(
    model: Model[Any],
    result: xr.DataTree,
    candidates: Judgements,
    *,
    target: Target | None = None,
    policy: Policy | None = None,
    batch_size: int = 10,
    draws: int | None = None,
    seed: int = 0,
) -> xr.Dataset:
    r"""Suggest the questions to ask next, and the annotators to ask.

    By default the score is the expected reduction, by an answer, of the posterior variance of the
    order of its two items, or for labels of the true class: a guesser's answer scores 0. Within a
    batch the score is conditional on the questions chosen before. `Policy` has further targets,
    rules for batches, and rules for annotators.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    candidates : Judgements
        Questions to choose from: ``Candidates.pairs(votes)``, ``Candidates.labels(labels)``, or any
        comparisons without regard to their outcomes.
    target : str, optional
        Short for ``policy=rt.Policy(target=...)``.
    policy : Policy, optional
    batch_size : int
    draws : int, optional
        Number of posterior draws to use. Without it, up to 4,000, and fewer for more than some
        thousand candidates: 200 at least.
    seed : int
        Seed of the choice of draws, and of a random policy.

    Returns
    -------
    xarray.Dataset
        With axis ``suggestion``, in the order of choice: ``first``, ``second``, ``by`` (names),
        ``score`` (of the question alone; a later question may have a higher one, of which those
        before it leave less), ``p_win`` (posterior mean probability that the first item wins). For
        labels: ``item``, ``by``, ``score``, and ``label``, the most probable answer, with its
        probability ``p_label``.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.crowd(num_items=6, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, seed=0, progress=False)
    >>> asked = rt.suggest(rt.BTL(), result, rt.Candidates.pairs(votes), batch_size=3)
    >>> asked.sizes["suggestion"], list(asked)
    (3, ['first', 'second', 'by', 'score', 'p_win'])
    """
    whole("batch_size", batch_size)
    if draws is not None:
        whole("draws", draws, least=2)
    check_one_kind(model)
    check_data(candidates, "candidates", model)
    if target is not None and policy is not None:
        refuse("target", target, "and `policy` both say what is wanted", "give one of them")
    policy = policy or Policy(target=target)
    if draws is None:
        answers = max(candidates.num_rows * len(candidates.listed_answers()), 1)
        draws = int(np.clip(_PROBABILITIES // answers, _FEWEST_DRAWS, _MOST_DRAWS))
    posterior = Posterior.of(model, result, draws=draws, seed=seed)
    check_names(policy, posterior.data.judges)
    if candidates.unit == candidates.row:
        questions: Any = recode(posterior.program, candidates.unanswered())
    else:
        questions = candidates.asked_of(posterior.data)
    chosen = policy.choose(posterior, questions, batch_size, seed=seed)
    if abs(chosen.highest) < _NOTHING:
        sentence = "all questions score 0: no answer would change anything of what is wanted"
        warnings.warn(sentence, DataWarning, stacklevel=3)
    elif not len(chosen.rows):
        warnings.warn("nobody may be asked: the quotas are used up", DataWarning, stacklevel=3)
    table = _predicted(posterior, questions.rows(chosen.rows))
    table["score"] = chosen.score
    order = dict.fromkeys([*candidates.question_names(), "score", *table])
    return xr.Dataset({name: ("suggestion", table[name]) for name in order})


def _predicted(posterior: Posterior, questions: Any) -> dict[str, Shaped[np.ndarray, " question"]]:
    """Columns of the questions by name, with the predicted answers."""
    answers = questions.listed_answers()
    probability = np.zeros((len(answers), 0))
    if questions.num_rows:
        probability = posterior.by_pieces(
            questions, lambda piece: mean(*posterior.answer_probs(piece))
        )
    names: dict[str, np.ndarray] = questions.question_names()
    if questions.success is not None:
        name, outcome = questions.success
        return names | {name: probability[answers.tolist().index(outcome)]}
    best = answers[probability.argmax(0)].tolist()
    if questions.answer in questions.axes:  # names keep their type
        coords = questions.coords[questions.axes[questions.answer]]
        words = names_array(coords)[np.array(best, int)]
    else:
        words = np.asarray([questions.listed_word(*entry) for entry in enumerate(best)])
    return names | {questions.predicted: words, f"p_{questions.predicted}": probability.max(0)}
