"""What does a new version of a manifest change for the people and agents who use it?

A text diff alone makes a reviewer classify changes in the head. Each changed value gets a risk and a sentence here; the
rules go by where in the manifest it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_lazy

from toolhub.kernel.diffing import invisible_characters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.utils.functional import _StrPromise

MISSING = object()
ORDER = {"high": 0, "medium": 1, "low": 2}
MAX_SHOWN = 300
LEAD_IN = 40

# Where a value is -> (risk, what its change means). The first prefix that fits decides.
RULES: tuple[tuple[str, str, _StrPromise], ...] = (
    ("/capabilities", "high", gettext_lazy("What the tool may reach")),
    ("/scopes", "high", gettext_lazy("The permissions that the tool asks for")),
    ("/side_effect", "high", gettext_lazy("What the tool does to the world")),
    ("/safety_class", "high", gettext_lazy("The declared safety class")),
    ("/requires_sandbox", "high", gettext_lazy("Whether the tool runs in the sandbox")),
    ("/consent", "high", gettext_lazy("When a person’s consent is needed")),
    ("/dependencies", "high", gettext_lazy("The code that the tool brings along")),
    ("/description", "high", gettext_lazy("Text that agents read")),
    ("/display_name", "medium", gettext_lazy("The name that people see")),
    ("/implementation", "medium", gettext_lazy("Which code runs")),
    ("/idempotency", "medium", gettext_lazy("Whether a retry is safe")),
    ("/input_schema", "medium", gettext_lazy("What callers send")),
    ("/output_schema", "medium", gettext_lazy("What callers get")),
    ("/limits", "medium", gettext_lazy("How much one call may use")),
    ("/timeout_ms", "low", gettext_lazy("How long a call may take")),
    ("/version", "low", gettext_lazy("The version number")),
)
OTHER = ("low", gettext_lazy("Another field"))
HIDDEN = ("high", gettext_lazy("Hidden characters in text that agents read"))


@dataclass(frozen=True, slots=True)
class Change:
    """``old`` is None for something new, ``new`` is None for something taken away; both are shown as text."""

    pointer: str
    risk: str
    what: _StrPromise
    old: str | None
    new: str | None


def changes_between(old: Any, new: Any) -> list[Change]:
    """Every changed value, riskiest first, in the order of the document."""
    return sorted(_changes(old, new), key=lambda change: ORDER[change.risk])


def _changes(old: Any, new: Any) -> Iterator[Change]:
    for pointer, before, after in _differences(old, new, ""):
        risk, what = next(((risk, what) for prefix, risk, what in RULES if _within(pointer, prefix)), OTHER)
        old_text, new_text = _text(before), _text(after)
        if new_text is not None and invisible_characters(new_text):
            risk, what = HIDDEN
        yield Change(pointer, risk, what, *_around_the_change(old_text, new_text))


def _within(pointer: str, prefix: str) -> bool:
    return pointer == prefix or pointer.startswith(prefix + "/")


def _differences(old: Any, new: Any, pointer: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            step = str(key).replace("~", "~0").replace("/", "~1")
            yield from _differences(old.get(key, MISSING), new.get(key, MISSING), f"{pointer}/{step}")
    elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
        yield pointer, old, new


def _text(value: Any) -> str | None:
    if value is MISSING:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _around_the_change(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Long texts are shown from shortly before the first difference on, so that what changed is never cut away."""
    start = 0
    if old is not None and new is not None and max(len(old), len(new)) > MAX_SHOWN // 2:
        start = max(0, _shared(old, new) - LEAD_IN)
    return _cut(old, start), _cut(new, start)


def _shared(old: str, new: str) -> int:
    """How many characters both texts begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(old), len(new)))


def _cut(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    shown = text[start : start + MAX_SHOWN]
    return ("…" if start else "") + shown + ("…" if start + MAX_SHOWN < len(text) else "")
