"""Expression matches: the tools of a tenant that an expression names, for whoever writes one."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from registry.discovery.selectors import load_manifests
from registry.models import Installation
from unitools.expressions import ExpressionError, build_subject, parse_cached

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal
    from unitools.expressions import Subject

NAMED = 6
NEAR = 3


@dataclass(frozen=True, slots=True)
class ExpressionMatches:
    """``names``: the first of those that it names; ``of``: how many are installed; ``wrong``: why it cannot be read; ``near``: what
    may have been meant, where it names none.
    """

    count: int = 0
    of: int = 0
    names: list[str] = field(default_factory=list)
    wrong: str = ""
    near: list[str] = field(default_factory=list)

    @property
    def more(self) -> int:
        return self.count - len(self.names)

    @property
    def is_all(self) -> bool:
        return self.of > 1 and self.count == self.of


def load_subjects(by: Principal) -> list[Subject]:
    """What expressions can ask about each tool that the tenant has installed, by name."""
    rows = dict(
        Installation.objects.visible_to(by).exclude(version=None).order_by("name").values_list("name", "version_id")
    )
    manifests = load_manifests(pk for pk in rows.values() if pk)
    return [build_subject(manifests[pk]) for pk in rows.values() if pk]


def match_tools(text: str, subjects: list[Subject]) -> ExpressionMatches:
    try:
        expression = parse_cached(text.strip())
    except ExpressionError as error:
        return ExpressionMatches(of=len(subjects), wrong=error.sentence)
    names = [subject.id for subject in subjects if expression.matches(subject)]
    near = [] if names else get_close_matches(text.strip(), [subject.id for subject in subjects], n=NEAR, cutoff=0.7)
    return ExpressionMatches(len(names), len(subjects), names[:NAMED], near=near)


def list_arguments(names: Iterable[str], *, by: Principal) -> list[str]:
    """JSON pointers of the arguments of these tools, to choose from: those that are no part of another one."""
    rows = Installation.objects.visible_to(by).filter(name__in=list(names)).exclude(version=None)
    manifests = load_manifests(pk for pk in rows.values_list("version_id", flat=True) if pk)
    found = {name for manifest in manifests.values() for name in manifest.input_schema.get("properties", {})}
    return [f"/{name.replace('~', '~0').replace('/', '~1')}" for name in sorted(found)]


def find_argument_types(text: str, pointer: str, *, tenant_id: UUID) -> set[str]:
    """What the tools that an expression names declare the type of an argument as. Empty: none of them says it."""
    try:
        expression = parse_cached(text.strip())
    except ExpressionError:
        return set()
    name = pointer[1:].replace("~1", "/").replace("~0", "~")
    rows = Installation.objects.filter(tenant_id=tenant_id).exclude(version=None)
    found: set[str] = set()
    for manifest in load_manifests(pk for pk in rows.values_list("version_id", flat=True) if pk).values():
        if expression.matches(build_subject(manifest)):
            declared = manifest.input_schema.get("properties", {}).get(name, {}).get("type", [])
            found |= {declared} if isinstance(declared, str) else set(declared)
    return found


def list_expressions(subjects: Iterable[Subject]) -> list[str]:
    """Usual ones to choose from: each tool, each family and each tag."""
    names, families, tags = [], set(), set()
    for subject in subjects:
        names.append(subject.id)
        group, package, _name = subject.id.split(".")
        families |= {f"{group}.*", f"{group}.{package}.*"}
        tags |= {f"tag:{tag}" for tag in subject.tags}
    return [*sorted(families), *names, *sorted(tags)]
