"""Identity of what was fitted, which tells an audit of it from an audit of something else."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from raters.judgements.stored import qualified_name
from raters.program import Program


def identity_of(program: Program[Any]) -> str:
    """Digest of a model and its data, the same once a fit of them is saved and read."""
    model, data = program.model, program.data
    facts = [qualified_name(type(model)), repr(model), data.flags()]
    digest = hashlib.blake2b(json.dumps(facts).encode(), digest_size=16)
    for name, array in sorted(data.packed().items()):
        # Whatever precision and order of bytes a file gives them.
        values = np.ascontiguousarray(array, np.float64)
        digest.update(f"{name}{values.shape}".encode())
        digest.update(values)
    return digest.hexdigest()
