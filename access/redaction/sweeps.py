"""Sweeps: a walk through all texts of a value, in which what detectors find is changed and counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from access.redaction.masks import changed_text, digit_text, number_duplicates

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Sweep:
    """Of one or several values: names of properties and numbers included. ``counts``: of what was changed, by kind."""

    kinds: tuple[str, ...]
    change: Callable[[str, str], str]
    counts: dict[str, int] = field(default_factory=dict)

    def text(self, text: str, name: str = "") -> str:
        changed, counts = changed_text(text, self.kinds, self.change, name=name)
        for kind, count in counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + count
        return changed

    def value(self, value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return self.text(value, name)
        if isinstance(value, dict):
            pairs = [(self.text(each), self.value(below, each)) for each, below in value.items()]
            return dict(zip(number_duplicates([each for each, _ in pairs]), (below for _, below in pairs), strict=True))
        if isinstance(value, list):
            return [self.value(each, name) for each in value]
        if (digits := digit_text(value)) is not None:
            changed = self.text(digits, name)
            return value if changed == digits else changed
        return value


class Placeholders:
    """What stands where something was taken out: the same for the same value, so that two of them can be told apart."""

    def __init__(self) -> None:
        self._numbers: dict[str, dict[str, int]] = {}

    def name_hit(self, text: str, kind: str) -> str:
        of_kind = self._numbers.setdefault(kind, {})
        return f"[redacted:{kind} {of_kind.setdefault(text, len(of_kind) + 1)}]"
