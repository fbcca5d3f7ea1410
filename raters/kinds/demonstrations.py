"""Demonstrations as a kind of judgement: reading, rationality or competence, reward, and policy."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Array, Bool, Float

from raters import kinds
from raters.auditing.intervals import table
from raters.auditing.verdicts import share_of
from raters.errors import PACKAGE, DataError, DataWarning, refuse
from raters.errors.validation import share
from raters.fitting.result import draws_of, in_double
from raters.judgements.demonstrations import Demonstrations
from raters.judgements.mdp import MDP
from raters.judgements.names import name_text, names_array
from raters.judgements.reading.features import check_finite, features_of
from raters.kinds import AuditLimits, Quantities
from raters.kinds.sections import shown, signs
from raters.model import Values
from raters.models import demonstrations as models
from raters.models.demonstrations import BehaviouralCloning, MaxEntIRL
from raters.models.demonstrations.soft_policy import unidentified, without_unidentified
from raters.program import Program

# Columns of a table of transitions.
_OF_TRANSITIONS = ("state", "action", "next_state", "probability")


def read_demonstrations(
    frame: Any,
    *,
    state: str,
    action: str,
    transitions: pd.DataFrame,
    trajectory: str | None = None,
    step: str | None = None,
    annotator: str | None = None,
    count: str | None = None,
    state_features: pd.DataFrame | None = None,
    discount: float = 0.95,
) -> Demonstrations:
    """Read demonstrations and the process that they are of from tables."""
    if lacking := [name for name in _OF_TRANSITIONS[:3] if name not in transitions]:
        problem = f"has no column {lacking[0]!r}; it has {list(transitions.columns)}"
        expected = "it must have columns state, action, next_state and probability"
        refuse("transitions", problem=problem, expected=expected, error=DataError)
    features = tuple(name for name in map(str, transitions) if name not in _OF_TRANSITIONS)
    roles: dict[str, Any] = {name: name for name in _OF_TRANSITIONS if name in transitions}
    mdp = MDP.from_frame(transitions, **roles, features=features, discount=discount)
    if state_features is not None:
        mdp = _with_state_features(mdp, state_features, keep=bool(features))
    columns = {"trajectory": trajectory, "step": step, "annotator": annotator, "count": count}
    return Demonstrations.from_frame(frame, mdp=mdp, state=state, action=action, **columns)


def _with_state_features(mdp: MDP, table: pd.DataFrame, *, keep: bool) -> MDP:
    """The process with features of its states, behind those of actions where these are kept."""
    listed = {name_text(name) for name in table.get("state", ())}
    ends = [mdp.states[code] for code in np.flatnonzero(mdp.ends)]
    zeros = pd.DataFrame({"state": [name for name in ends if name_text(name) not in listed]})
    whole = pd.concat([table, zeros.reindex(columns=table.columns, fill_value=0.0)])
    try:
        values, names = features_of(whole, "state", None, mdp.states)
        check_finite(values, names, mdp.states)
    except DataError as error:
        expected = "it must have a column state, and one of numbers for each feature; a row for"
        expected += " each state, where ends may be left out"
        refuse("state_features", None, error.problem, expected, error=DataError)
    features = np.repeat(values[:, None], mdp.num_actions, axis=1)
    if keep:
        features = np.concatenate([mdp.features, features], axis=-1)
        names = (*mdp.feature_names, *names)
    described = dataclasses.replace(mdp, features=features, feature_names=names)
    described.check()
    return described


# Draws of which policies are computed.
_DRAWS = 400
# Least probability of a crowd that acts at random that is warned of.
_LIKELY = 0.5
# Draws by which demonstrations are compared with acting at random.
_FEW = 50
# Within so many margins of 0 of the crowd's mean a demonstrator acts at random.
_MARGINS = 2


def quantities(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Rationality, or competence, of each demonstrator."""
    share("margin", limits.margin)
    if not {"rationality", "competence"} & set(program.sites):
        problem = "has neither rationalities nor competences to audit"
        expected = "fit MaxEntIRL or BehaviouralCloning, and pass that model and its result"
        refuse("model", program.model, problem, expected, instead="rt.MaxEntIRL()")
    draws, policy = draws_of(program, result)[0], policies(program, result)
    agreement = {"agreement": _agreement(program.data, policy["probability"].values)}
    near = _MARGINS * limits.margin
    if "rationality" in program.sites:
        rationality = np.asarray(draws["rationality"], np.float64)
        scale = np.abs(rationality).mean(1, keepdims=True)
        chance = at_random(program, draws, near)
        if chance.mean() >= _LIKELY:
            warnings.warn(
                "the demonstrations are hardly more probable under any reward than at random:"
                f" by this model, nobody acts for a goal with probability {chance.mean():.0%}; add"
                " demonstrations, or features that their goal may depend on",
                DataWarning,
                skip_file_prefixes=PACKAGE,
            )
        rationality = np.where(chance[:, None], 0.0, rationality)
        relative = rationality / np.where(scale > 0, scale, 1.0)
        chances = {
            "relative": relative.mean(0),
            "p_guessing": (np.abs(relative) < near).mean(0),
            "p_adversarial": (rationality < 0).mean(0),
        }
        tables = {"reward": rewards(program, result, limits.level), "policy": policy}
        values, columns = {"rationality": rationality}, chances | agreement
        return Quantities(values, "rationality", columns, tables, by_crowd=True)
    values = {"competence": np.asarray(draws["competence"])}
    chances = {"p_guessing": (values["competence"] < near).mean(0)} | agreement
    return Quantities(values, "competence", chances, {"policy": policy}, by_crowd=True)


def at_random(program: Program[Any], draws: Values, near: float) -> Bool[np.ndarray, " draw"]:
    """Draws in which the whole crowd acts at random."""
    data, number = program.data, len(draws["rationality"])
    steps = np.asarray(_free_steps(data), float)
    by_each = np.bincount(np.asarray(data.annotator), steps, data.num_annotators)
    limit = (data.num_features * np.log1p(steps.sum()) + np.log1p(by_each).sum()) / 2
    some = np.unique(np.linspace(0, number - 1, _FEW).astype(int))
    few = {name: value[some] for name, value in draws.items()}
    if in_double(_gain, program, few).max() > limit:
        return np.zeros(number, bool)
    return np.asarray(in_double(_distance, program, draws) < near)


def rewards(program: Program[Any], result: xr.DataTree, level: float) -> xr.Dataset:
    """Coefficients of the reward, as far as demonstrations can tell them."""
    mdp = program.data.mdp
    draws = np.asarray(draws_of(program, result)[0]["coefficient"], np.float64)
    known = without_unidentified(draws, mdp)
    columns = {"p_positive": (known > 0).mean(0), "identified": 1 - (unidentified(mdp) ** 2).sum(0)}
    return table("feature", program.data.feature_names, columns, {"coefficient": known}, level)


def policies(program: Program[Any], result: xr.DataTree) -> xr.Dataset:
    """Posterior mean of the policy of rationality 1, or of the one that all share."""
    data, few = program.data, draws_of(program, result, _DRAWS)[0]
    if isinstance(program.model, MaxEntIRL):
        probs = in_double(_policy, program, few).mean(0)
    else:
        assert isinstance(program.model, BehaviouralCloning)
        probs = np.asarray(few["policy"], np.float64).mean(0) * np.asarray(data.allowed)
        probs = probs / probs.sum(1, keepdims=True)
    steps = ("state", data.judgements_by("state"))
    columns = {"probability": (("state", "action"), probs), "steps": steps}
    coords = {"state": names_array(data.states), "action": names_array(data.actions)}
    return xr.Dataset(columns, coords)


def _free_steps(data: Any) -> Any:
    """Number of steps of each row with a choice between actions."""
    return data.weight * (data.allowed.sum(1) > 1)[data.state]


def _policy(model: MaxEntIRL, data: Any, values: Values) -> Float[Array, "state action"]:
    """Policy of rationality 1."""
    return jnp.exp(model.log_policies(data, values["coefficient"], jnp.ones(1))[0])


def _gain(model: MaxEntIRL, data: Any, values: Values) -> Float[Array, ""]:
    """Log-likelihood ratio to acting at random, in nats."""
    policies = model.log_policies(data, values["coefficient"], values["rationality"])
    taken = policies[data.annotator, data.state, data.action]
    chance = jnp.log(data.allowed.sum(1))[data.state]
    return jnp.sum(_free_steps(data) * (taken + chance))


def _distance(model: MaxEntIRL, data: Any, values: Values) -> Float[Array, ""]:
    """Total variation between the policy of the mean rationality and acting at random."""
    average = jnp.abs(values["rationality"]).mean()[None]
    policy = jnp.exp(model.log_policies(data, values["coefficient"], average)[0])
    apart = jnp.abs(policy - data.allowed / data.allowed.sum(1, keepdims=True)).sum(1) / 2
    steps = _free_steps(data)
    return jnp.sum(steps * apart[data.state]) / jnp.maximum(steps.sum(), 1.0)


def _agreement(
    data: Demonstrations, policy: Float[np.ndarray, "state action"]
) -> Float[np.ndarray, " annotator"]:
    """Share of the steps with a choice that take the most probable action."""
    best = policy.argmax(1)[np.asarray(data.state)] == np.asarray(data.action)
    free = (data.num_choices() > 1)[np.asarray(data.state)] * np.asarray(data.weight, float)
    return share_of(np.asarray(data.annotator), best * free, free, data.num_annotators)


# ---------------------------------------------------------------- sections of a report


def reward(context: kinds.AuditContext) -> kinds.Section | None:
    """Coefficients of the reward, as far as demonstrations can tell them."""
    if "coefficient" not in context.program.sites:
        return None
    table = rewards(context.program, context.result, context.level).to_dataframe()
    table = table.reset_index().sort_values("coefficient", ascending=False, kind="stable")
    return kinds.Section(
        key="reward",
        findings=(signs(table, "feature"),),
        columns=shown("feature coefficient p_positive identified"),
        table=table,
        limits=(kinds.finding("one_goal"),),
    )


def policy(context: kinds.AuditContext) -> kinds.Section:
    """Most probable action in each state with a choice, those most demonstrated first."""
    of_state = policies(context.program, context.result)
    probability = of_state["probability"]
    table = pd.DataFrame(
        {
            "state": of_state["state"].values.astype(str),
            "action": of_state["action"].values[probability.values.argmax(1)].astype(str),
            "probability": probability.values.max(1),
            "steps": of_state["steps"].values,
        }
    )[context.program.data.num_choices() > 1]
    table = table.sort_values("steps", ascending=False, kind="stable", ignore_index=True)
    unseen = int((table["steps"] == 0).sum())
    learned = "coefficient" in context.program.sites
    return kinds.Section(
        key="policy",
        findings=(kinds.finding("policy", by_reward=learned, unseen=unseen, of=len(table)),),
        columns=shown("state action probability steps"),
        table=table,
    )


def _questions(data: Demonstrations) -> Demonstrations:
    """Every state in which there is a choice, put to every demonstrator."""
    free = np.flatnonzero(data.num_choices() > 1)
    if not len(free):
        expected = "there must be a state with a choice between actions"
        refuse("data", problem="leaves nothing to ask", expected=expected, error=DataError)
    state, who = (part.ravel() for part in np.meshgrid(free, range(data.num_annotators)))
    asked = dataclasses.replace(data.unanswered(), count=None)
    return dataclasses.replace(asked, state=state.astype(np.int32), annotator=who.astype(np.int32))


DEMONSTRATIONS = kinds.Kind(
    data=Demonstrations,
    readers=(kinds.Reader(read_demonstrations),),
    models=tuple(vars(models)[name] for name in models.__all__),
    default=MaxEntIRL(),
    words=kinds.Words("step", "steps", "least rational"),
    questions=_questions,
    quantities=quantities,
    threshold=0.25,
    columns=shown("rationality competence agreement p_guessing p_adversarial"),
    sections=(reward, policy),
)
