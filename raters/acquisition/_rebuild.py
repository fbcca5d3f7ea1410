"""Models, back-ends, policies and stopping rules back from the text that a journal holds of them."""

from __future__ import annotations

from typing import Any

from raters._reprs import read
from raters.errors import SettingError


def rebuilt(text: str, what: str) -> Any:
    """A model, back-end, policy or stopping rule from its ``repr``.

    Only calls of raters' own dataclasses, with literals and such calls as arguments, are read; nothing is executed.

    Raises
    ------
    SettingError
        When it is something else.
    """
    try:
        return read(text, _known())
    except ValueError as error:
        how = "rt.Campaign.open(path, stop=...)" if what == "stop" else "rt.Campaign(path, model, pool, ...)"
        raise SettingError(
            f"cannot rebuild the {what} {text!r} of the journal; give what the campaign started with: {how}"
        ) from error


def _known() -> dict[str, type]:
    """The dataclasses that a journal may name."""
    from raters import acquisition, inference, models

    found = [value for module in (models, inference, acquisition) for value in vars(module).values()]
    return {kind.__name__: kind for kind in found if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")}
