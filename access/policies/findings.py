"""Policy findings: what is wrong with a policy, and where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

MAX_QUOTED = 80


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """``pointer`` is a JSON Pointer into the document, ``rule`` the name of the check that found it."""

    pointer: str
    rule: str
    message: str
    fix: str
    severity: str = "error"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


Found = Iterator[PolicyFinding]


def is_sound(findings: list[PolicyFinding]) -> bool:
    """No errors; warnings may be there."""
    return all(finding.severity != "error" for finding in findings)


def quote_value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"


def suggest_known(value: Any, known: tuple[str, ...]) -> str:
    near = get_close_matches(str(value), known, n=1)
    return f"Did you mean {near[0]}?" if near else f"Use one of: {', '.join(known)}."


def escape_step(name: Any) -> str:
    """One step of a pointer."""
    return str(name)[:MAX_QUOTED].replace("~", "~0").replace("/", "~1")
