"""Server environment: what a server of others finds in its environment beside what every program of a box does."""

from __future__ import annotations

from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


def read_environment(
    said: Iterable[dict[str, str]], config: Callable[[str], Any], secret: Callable[[str], str]
) -> dict[str, str]:
    """The values of what the manifest gives to the server by name. What the tenant has not set (``LookupError``) is left out."""
    found: dict[str, str] = {}
    for each in said:
        with suppress(LookupError):
            if "secret" in each:
                found[each["name"]] = secret(each["secret"])
            else:
                value = each["value"] if "value" in each else config(each["config"])
                found[each["name"]] = value if isinstance(value, str) else str(value)
    if unfit := [name for name, value in found.items() if "\0" in value]:
        raise ValueError(f"{', '.join(unfit)}: a value holds a NUL character, which no environment can.")
    return found
