"""Settings of a campaign: checked, and as text in its journal."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Shaped

from raters.acquisition.batches import Batch
from raters.acquisition.campaign.fits import prior, several_draws
from raters.acquisition.campaign.journal import Journal, named
from raters.acquisition.campaign.stopping import Stop
from raters.acquisition.policy import AnnotatorRule, Policy, chooses_at_random
from raters.acquisition.questions import pool as pools
from raters.acquisition.scores import Criterion
from raters.errors import BackendError, RatersError, SettingError, refuse
from raters.errors.validation import positive, whole
from raters.fitting.storage import from_json, to_json
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.judgements.stored import imported_class, qualified_name
from raters.model import Model
from raters.program import Program

# Parts that are stored as text.
_BUILT = {"model": Model, "policy": Policy, "backend": Backend}
# A rule to stop by: False for none at all, None for that of the journal.
Rule = Stop | Literal[False] | None


class Setup(NamedTuple):
    """Parts of a campaign that its journal fixes."""

    model: Model[Any]
    pool: Judgements
    base: Judgements
    backend: Backend
    policy: Policy
    again: bool
    seed: int

    @classmethod
    def stored(cls, journal: Journal) -> Setup:
        """Build the parts that a journal holds."""
        texts = journal.identity
        try:
            built = {name: rebuilt(texts[name], kind, name) for name, kind in _BUILT.items()}
            built |= {"pool": stored_data(journal, "pool"), "base": stored_data(journal, "data")}
            return cls(again=texts["again"] == "True", seed=int(texts["seed"]), **built)
        except RatersError:
            raise
        except Exception as error:  # of texts and arrays that no campaign wrote
            raise journal.damaged(error) from error

    def identity(self) -> dict[str, str]:
        """Texts that must be equal for two campaigns to be one."""
        texts = {name: to_json(getattr(self, name)) for name in _BUILT}
        texts |= {"again": str(self.again), "seed": str(self.seed)}
        texts |= {"kind": qualified_name(type(self.pool))} | self.pool.flags()
        return texts | {"pool": pools.digest(self.pool), "data": pools.digest(self.base)}

    def parts(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Arrays that the journal stores."""
        parts = {"pool": self.pool.packed(), "data": self.base.packed()}
        return {f"{part}/{name}": parts[part][name] for part in parts for name in parts[part]}

    def settings(self, batch_size: int | None, budget: float | None, stop: Rule) -> dict[str, str]:
        """Text of the settings that may change; raise for rules without a meaning."""
        settings = {}
        if batch_size is not None:
            whole("batch_size", batch_size)
            settings["batch_size"] = str(batch_size)
        if budget is not None:
            if budget != math.inf:
                positive("budget", budget)
            settings["budget"] = "" if budget == math.inf else repr(float(budget))
        if stop is False:
            settings["stop"] = ""
        elif stop is not None:
            # Refused where it has no meaning, or so many draws can never meet it.
            posterior = prior(self.model, self.pool, self.seed, several_draws(self.backend))
            stop.value(dataclasses.replace(posterior, pool=self._few()))
            settings["stop"] = to_json(stop)
        return settings

    def check_possible(self) -> None:
        """Raise the errors of the first batch and the first fit before anything is written."""
        model, pool = self.model, self.pool
        self.policy.check_names(pool.judges)
        # One answer by everybody: some models need several annotators, and use the prior until
        # they have them.
        _, first = np.unique(np.asarray(pool.codes(pool.judge)), return_index=True)
        outcomes = np.full(len(first), pool.listed_answers()[-1], float)
        data = self.base.joined(pools.answers(pool, np.sort(first), outcomes))
        if reason := self.backend.why_not(Program(model, data)):
            raise BackendError(reason)
        if not chooses_at_random(self.policy):
            several_draws(self.backend)
            self.policy.choose(prior(model, pool, self.seed), self._few(), 1, seed=0)

    def _few(self) -> Judgements:
        """The first questions."""
        return self.pool.rows(np.arange(min(2, self.pool.num_rows)))


def stored_data(journal: Journal, name: str) -> Any:
    """Judgements of a journal: its ``"pool"``, or its ``"data"``."""
    container: Any = imported_class(journal.identity["kind"], (Judgements,))
    return container.unpack(named(journal.parts.items(), f"{name}/"), journal.identity)


def rebuilt(text: str, kind: type, name: str) -> Any:
    """Build the model, back-end, policy or stopping rule that a journal holds."""
    expected = (Model, Backend, Policy, Criterion, Batch, AnnotatorRule, Stop)
    try:
        thing = from_json(text, expected, f"{name} of the journal")
    except SettingError as error:
        thing = error
    if not isinstance(thing, kind):
        problem = f"of the journal does not come back: {thing}"
        refuse(name, problem=problem, expected="give what the campaign started with")
    return thing
