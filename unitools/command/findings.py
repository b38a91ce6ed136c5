"""What would a hub find in the tools of a file, and where in the file is it?

The rules of a hub (:mod:`unitools.checks`) need packages that tools do without: those of the extra ``hub``.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from unitools.command.answers import CannotRun, install
from unitools.validating import Finding, findings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from unitools.publications import Publication

_NEEDED = ("idna", "jsonschema", "jsonschema_rs", "packaging")


def check_rules_are_here() -> None:
    """Rather no answer than "0 errors" from half of the rules."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise CannotRun(
            f"Whether a hub takes the tools is judged with more packages: {install('hub')} "
            "Without them --local looks at the rest."
        )


def found_by_a_hub(made: Publication) -> list[Finding]:
    """By every rule that needs nothing of the hub itself. A manifest of the wrong shape was found before, and cannot be read."""
    check_rules_are_here()
    checks = importlib.import_module("unitools.checks")
    return [
        Finding(made.names[document["id"]], found.pointer, f"{found.message} {found.fix}", found.severity)
        for document in made.manifests
        if not findings_of(document, "")
        for found in checks.findings_of(document)
    ]


def lines_of(findings: Iterable[Finding], places: Mapping[str, str]) -> Iterator[str]:
    """``error: quotes.py:9: get_quote /ttl_seconds: …``"""
    for each in findings:
        place = " ".join(part for part in (each.tool, each.pointer) if part)
        yield ": ".join(part for part in (each.severity, places.get(each.tool, ""), place, each.message) if part)
