"""Pages of the reference: one for each public module, which lists the names of its ``__all__``."""

from __future__ import annotations

import importlib
import inspect
import shutil
from pathlib import Path

MODULES = {
    "raters": "What most analyses need.",
    "raters.judgements": "Containers, and their parts for kinds of one's own.",
    "raters.models": "Models that are not at the top level.",
    "raters.inference": "Back-ends, and their base class.",
    "raters.infer": "A kernel for NumPyro's MCMC.",
    "raters.fitting": "Around a fit: parts of joint results, blocks, groups for ArviZ.",
    "raters.checking": "Dependence between annotators, and calibration of samplers.",
    "raters.checking.discrepancies": "What `raters.check` measures.",
    "raters.auditing": "Results of an audit, and fits without dropped annotators.",
    "raters.reporting": "Reports and leaderboards.",
    "raters.figures": "Figures: each function returns an ArviZ plot collection.",
    "raters.acquisition": "Policies, scores, stopping rules and simulations.",
    "raters.acquisition.scores": "Further scores of questions.",
    "raters.acquisition.batches": "Further rules for batches.",
    "raters.acquisition.formats": "Questions and answers of Label Studio and Argilla.",
    "raters.alignment": "Policies from rewards, and regrets of types.",
    "raters.imitation": "Imitation learning on tables.",
    "raters.datasets": "Generators with known truth, and one small real table.",
    "raters.testing": "The contract of models, back-ends and results.",
    "raters.model": "The base class of models, and symmetries.",
    "raters.program": "A model read on its data.",
    "raters.distributions": "Distributions of the models.",
    "raters.kinds": "What belongs to a kind of judgement, and its registration.",
    "raters.kinds.reading": "What `raters.read` gives.",
    "raters.errors": "Errors and warnings.",
}
# Modules of which users reach these names alone.
_ALONE = {
    "raters.program": ["LatentClass", "Program", "Site"],
    "raters.acquisition.batches": ["BatchBald", "Power", "SparseSubset"],
    "raters.acquisition.formats": [
        *("Imported", "argilla_settings", "from_argilla", "from_label_studio"),
        *("label_studio_config", "relabel_queue", "to_argilla", "to_label_studio"),
        "with_predictions",
    ],
    "raters.acquisition.scores": [
        *("About", "Bald", "CommitteeDivergence", "Epig", "LeastConfidence"),
        *("VarianceReduction", "VoteEntropy"),
    ],
}
# Modules whose functions are for the package.
_CLASSES = {"raters.model"}


def public_names(name: str) -> list[str]:
    """Return the public classes and functions of a module that are not at the top level."""
    module = importlib.import_module(name)
    top = set() if name == "raters" else set(importlib.import_module("raters").__all__)
    listed = _ALONE.get(name) or getattr(module, "__all__", None)
    if listed is None:
        listed = [
            other
            for other, value in vars(module).items()
            if not other.startswith("_") and getattr(value, "__module__", "") == name
        ]
    values = {other: getattr(module, other) for other in listed}
    return sorted(
        other
        for other, value in values.items()
        if other not in top
        and (inspect.isclass(value) or (inspect.isfunction(value) and name not in _CLASSES))
    )


def write_pages(folder: Path) -> None:
    """Write the page of each module into a folder, which is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "modules").mkdir(parents=True)
    for name, sentence in MODULES.items():
        names = "\n".join(f"   {other}" for other in public_names(name))
        (folder / "modules" / f"{name}.md").write_text(
            f"# `{name}`\n\n{sentence}\n\n```{{eval-rst}}\n.. currentmodule:: {name}\n\n"
            f".. autosummary::\n   :toctree: ../names\n\n{names}\n```\n"
        )
