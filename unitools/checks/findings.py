"""Findings: what one is, and which rules can make one.

A rule says once what it asks for and how to mend it; :data:`RULES` is what the reference page and the tests are made from.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Severity = Literal["error", "warning"]
Path = tuple[str | int, ...]

MAX_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class ManifestFinding:
    """One mistake: where it is, which rule it breaks, what is the case, and how to mend it."""

    pointer: str
    rule: str
    message: str
    fix: str
    severity: str = "error"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ManifestRule:
    id: str
    asks: str  # one sentence about every manifest
    fix: str
    severity: Severity = "error"

    def at(self, path: Iterable[str | int], message: str, fix: str = "") -> ManifestFinding:
        return ManifestFinding(format_pointer(path), self.id, format_sentence(message), fix or self.fix, self.severity)


RULES: dict[str, ManifestRule] = {}


def declare_rule(id: str, asks: str, fix: str, severity: Severity = "error") -> ManifestRule:
    """Declare a rule; each has one place."""
    if id in RULES:
        raise RuntimeError(f"The rule {id} is declared twice.")
    RULES[id] = ManifestRule(id, asks, fix, severity)
    return RULES[id]


def declare_warning(id: str, asks: str, fix: str) -> ManifestRule:
    """Declare a rule whose findings do not refuse the manifest: the reviewer sees them."""
    return declare_rule(id, asks, fix, "warning")


def format_sentence(text: str) -> str:
    """One line that ends like a sentence, also when a library wrote it."""
    line = text.strip().partition("\n")[0]
    if len(line) > MAX_MESSAGE:
        return line[: MAX_MESSAGE - 1] + "…"
    return line if line.endswith((".", "?", "!", "…")) else line + "."


def escape_token(part: str | int) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")


def format_pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + escape_token(part) for part in path)


_NOWHERE: Any = object()


def resolve_pointer(document: Any, text: str, default: Any = None) -> Any:
    """What a JSON pointer names; ``default`` when nothing is there."""
    node = document
    for part in text.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isascii() and key.isdigit() and len(key) < 10 and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, dict) and key in node:
            node = node[key]
        else:
            return default
    return node


def has_pointer(document: Any, text: str) -> bool:
    return (not text or text.startswith("/")) and resolve_pointer(document, text, _NOWHERE) is not _NOWHERE


def walk_document(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of a document with its path, in its order, without recursion."""
    stack: list[tuple[Path, Any]] = [(path, node)]
    while stack:
        here, value = stack.pop()
        yield here, value
        if isinstance(value, dict):
            stack += [((*here, key), child) for key, child in reversed(value.items())]
        elif isinstance(value, list):
            stack += [((*here, index), child) for index, child in reversed(list(enumerate(value)))]
