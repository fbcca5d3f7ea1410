"""The verb `suggest`: which questions to ask next, and whom."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import xarray as xr

from raters import _frame
from raters._check import whole
from raters._result import check_data, check_model, label_array
from raters.acquisition import scores
from raters.acquisition.policy import Policy, Target, check_names
from raters.acquisition.posterior import Posterior, rows_of
from raters.data import Comparisons
from raters.errors import DataWarning, SettingError
from raters.labels import Labels
from raters.model import Model
from raters.predict import recode

# Below it a score is rounding: the answer changes nothing that is wanted under any draw.
_NOTHING = 1e-10


def suggest(
    model: Model,
    result: xr.DataTree,
    candidates: Comparisons | Labels,
    *,
    target: Target | None = None,
    policy: Policy | None = None,
    batch_size: int = 10,
    draws: int = 200,
    seed: int = 0,
) -> xr.Dataset:
    r"""The questions that are most worth asking, and whom.

    By default the answers are wanted for the ranking of the items: the score is by how much an answer is expected to lower
    the posterior variance of which of its two items is the better,

    .. math:: \frac{\mathrm{Cov}(p(y \mid \theta), 1[r_i > r_j])^2}{p(y)\,(1 - p(y))},

    over posterior draws θ of rewards and competences alike, so that questions and annotators are chosen together. A guesser's
    answer is uncertain but tells nothing: it scores 0. Within a batch the score allows for the answers to the questions chosen
    before. For labels the answers are wanted for the true classes. `Policy` says what else can be wanted, how batches are put
    together, and who is asked.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    candidates : Comparisons or Labels
        Questions to choose from: ``Candidates.pairs(votes)``, ``Candidates.annotators(votes, first, second)``,
        ``Candidates.labels(labels)``, or any comparisons without regard to their outcomes.
    target : str, optional
        Short for ``policy=rt.Policy(target=...)``: ``"ranking"``, ``"reward"``, ``"top_k"``, ``"truth"``, ``"competence"``,
        ``"predictive"`` or ``"everything"``.
    policy : Policy, optional
    batch_size : int
        Questions to return.
    draws : int
        Posterior draws to use.
    seed : int
        Picks the draws, and what is random in the policy.

    Returns
    -------
    xarray.Dataset
        With axis ``suggestion``, in the order in which they were chosen: ``first``, ``second``, ``by`` (names), ``score`` (of
        the question by itself: one that comes later may have a higher one, of which those before it leave less), ``p_win``
        (posterior mean probability that the first item wins). For labels: ``item``, ``by``, ``score``, and ``label``, the most
        probable answer, with its probability ``p_label``.

    Warns
    -----
    DataWarning
        When all candidates score 0, so that no answer would change what is wanted; when the quotas leave nobody to ask.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=200), seed=0, progress=False)
    >>> rt.suggest(rt.BTL(), result, rt.Candidates.pairs(votes), batch_size=3).sizes["suggestion"]
    3

    Who can be trusted? Ask what tells that:

    >>> model = rt.ExtendedBTL()
    >>> result = rt.fit(model, votes, rt.PGEM(draws=200), seed=0, progress=False)
    >>> asked = rt.suggest(model, result, rt.Candidates.pairs(votes), target="competence", batch_size=2)
    >>> list(asked)
    ['first', 'second', 'by', 'score', 'p_win']
    """
    whole("batch_size", batch_size)
    whole("draws", draws, least=2)
    check_model(model)
    check_data(candidates, "candidates", model)
    if policy is not None and not isinstance(policy, Policy):
        raise SettingError(f"policy={policy!r} is not possible; it must be one such as rt.Policy(target='ranking')")
    if target is not None and policy is not None:
        raise SettingError(
            f"target={target!r} and policy= both say what is wanted; write policy=rt.Policy(target={target!r}, ...)"
        )
    policy = policy or Policy(target=target)
    posterior = Posterior.of(model, result, draws=draws, seed=seed)
    check_names(policy, posterior.data.annotators)
    questions = in_codes_of(posterior, candidates)
    chosen = policy.choose(posterior, questions, batch_size, seed=seed)
    if abs(chosen.highest) < _NOTHING:
        sentence = "all questions score 0: no answer would change anything of what is wanted. Stop here, or want something else"
        warnings.warn(sentence, DataWarning, stacklevel=2)
    elif not len(chosen.rows):
        warnings.warn("nobody may be asked: the quotas are used up", DataWarning, stacklevel=2)
    table = described(posterior, rows_of(questions, chosen.rows))
    table["score"] = chosen.score
    order = [*(("item", "by") if isinstance(candidates, Labels) else ("first", "second", "by")), "score"]
    order += [name for name in table if name not in order]
    return xr.Dataset({name: ("suggestion", table[name]) for name in order})


def in_codes_of(posterior: Posterior, candidates: Comparisons | Labels) -> Any:
    """Candidates in the codes of what was fitted; `DataError` for names that were not."""
    fitted: Any = posterior.data
    if isinstance(candidates, Comparisons):
        return recode(posterior.model, candidates.without_outcomes(), fitted)
    item = _frame.match(np.asarray(candidates.item), candidates.items, fitted.items, "item")
    annotator = _frame.match(np.asarray(candidates.annotator), candidates.annotators, fitted.annotators, "annotator")
    # The units of what was fitted are all items, in order.
    return dataclasses.replace(fitted, group=item, annotator=annotator, label=None, count=None, most=1)


def described(posterior: Posterior, questions: Any) -> dict[str, np.ndarray]:
    """Questions by name, with what the draws predict of the answer."""
    parts = []
    for piece, number in posterior.pieces(questions):
        chances = posterior.chances(piece)
        parts.append(np.asarray(scores.mean(chances.table, chances.weight))[:, :number])
    answer = np.concatenate(parts, 1) if parts else np.zeros((2, 0))
    names = {"by": (questions.annotators, questions.annotator)}
    if isinstance(questions, Labels):
        names |= {"item": (questions.items, questions.item), "label": (questions.classes, answer.argmax(0))}
        told = {"p_label": answer.max(0)}
    else:
        names |= {"first": (questions.items, questions.first), "second": (questions.items, questions.second)}
        told = {"p_win": answer[0]}
    return {role: label_array(of)[np.asarray(codes)] for role, (of, codes) in names.items()} | told
