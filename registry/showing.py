"""How are the changes of a version shown to people?

Long values from shortly before the first difference on, so that what changed is never cut away.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_SHOWN = 300
LEAD_IN = 40


def shown_changes(changes: Iterable[dict[str, Any]], *, acknowledged: Collection[str] = ()) -> list[dict[str, Any]]:
    """The changes with ``before`` and ``after`` as texts (None: there was nothing), and whether each box is ticked."""
    found = []
    for change in changes:
        before, after = _around_the_change(_text(change["before"]), _text(change["after"]))
        ticked = change["id"] in acknowledged
        found.append({**change, "before": before, "after": after, "acknowledged": ticked})
    return found


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _around_the_change(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    start = 0
    if before is not None and after is not None and max(len(before), len(after)) > MAX_SHOWN // 2:
        start = max(0, _shared(before, after) - LEAD_IN)
    return _cut(before, start), _cut(after, start)


def _shared(before: str, after: str) -> int:
    """How many characters both texts begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(before), len(after)))


def _cut(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    shown = text[start : start + MAX_SHOWN]
    return ("…" if start else "") + shown + ("…" if start + MAX_SHOWN < len(text) else "")
