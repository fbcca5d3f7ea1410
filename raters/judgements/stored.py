"""Classes as text in a file and back, known ones only."""

from __future__ import annotations

from raters.errors import SettingError, refuse

# Attribute of a result with the containers of the parts.
PARTS = "parts"


def qualified_name(cls: type) -> str:
    """Name under which a class is stored: its module and its name there."""
    return f"{cls.__module__}:{cls.__qualname__}"


# Classes that have gone, by what takes their place in stored settings.
_SUCCESSORS = {"raters.inference.polya_gamma.vi:PGVI": "raters.inference.polya_gamma.em:PGEM"}


def imported_class(name: str, expected: tuple[type, ...]) -> type:
    """The class of a qualified name, among those that are defined and derive from the expected."""
    if not isinstance(name, str):
        raise SettingError(f"{name!r} names no class: the file was altered")
    module, _, path = _SUCCESSORS.get(name, name).partition(":")
    candidates = [cls for base in expected for cls in _derived(base) if cls.__qualname__ == path]
    named = [cls for cls in candidates if cls.__module__ == module]
    if not named and module.startswith("raters."):  # It has moved to another file of its room.
        room = module.split(".")[:2]
        named = [cls for cls in candidates if cls.__module__.split(".")[:2] == room]
    if not named:
        refuse(
            "kind",
            None,
            f"does not bring class {path!r} of module {module!r}",
            f"name a kind whose module imports it, as MODULE:NAME, such as {module}:KIND",
        )
    return named[-1]


def _derived(base: type) -> list[type]:
    """A class and all that derive from it, in order of definition along each branch."""
    derived = [base]
    subclasses: list[type] = base.__subclasses__()
    for subclass in subclasses:
        derived += _derived(subclass)
    return derived
