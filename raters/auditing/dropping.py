"""Fits without those whom an audit flagged."""

from __future__ import annotations

from typing import Any

import xarray as xr

from raters.auditing.audit import Audit
from raters.errors import refuse
from raters.errors.validation import checked
from raters.fitting.fit import fit
from raters.fitting.result import check_data
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.judgements.names import plural, shorten
from raters.model import Model


@checked
def drop(
    model: Model[Any],
    data: Judgements,
    audit: Audit,
    backend: Backend | None = None,
    *,
    seed: int,
    progress: bool = True,
) -> xr.DataTree:
    """Fit again without the annotators that an audit flagged.

    Parameters
    ----------
    model : Model
    data : Judgements
        The judgements that were audited.
    audit : Audit
    backend : Backend, optional
    seed : int
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    xarray.DataTree
        The new fit; the items are the same, the flagged annotators are gone.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, seed=0, progress=False), reference="crowd")
    >>> rt.auditing.drop(model, votes, audit, seed=0, progress=False).posterior.sizes["annotator"]
    7
    """
    check_data(data, "data", model)
    flagged = set(map(str, audit.flagged))
    if unknown := sorted(flagged - set(map(str, data.judges))):
        problem = f"has no {plural(data.judge)} {shorten(unknown)}, whom the audit flagged"
        refuse("data", data, problem, "pass the data that were audited")
    names = [name for name in data.judges if str(name) in flagged]
    return fit(model, data.without_judges(names), backend, seed=seed, progress=progress)
