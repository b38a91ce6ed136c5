"""Findings of a file: what a hub would find in its tools, and where in the file that is.

The rules of a hub (:mod:`unitools.checks`) need packages that tools do without: those of the extra ``hub``.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING

from unitools.command.terminal import CannotRun, format_install_hint
from unitools.manifest import Manifest
from unitools.manifest_validation import PublicationFinding, validate_manifest
from unitools.packages import EntryUnfit, PackageError, check_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from unitools.publications import Publication

_NEEDED = ("idna", "jsonschema", "jsonschema_rs", "packaging")


def check_rules_are_here() -> None:
    """Rather no answer than "0 errors" from half of the rules."""
    if any(find_spec(name) is None for name in _NEEDED):
        raise CannotRun(
            f"Whether a hub takes the tools is judged with more packages: {format_install_hint('hub')} "
            "Without them --local looks at the rest."
        )


def find_hub_findings(made: Publication) -> list[PublicationFinding]:
    """By every rule that needs nothing of the hub itself. A manifest of the wrong shape was found before, and cannot be read."""
    check_rules_are_here()
    checks = importlib.import_module("unitools.checks")
    found: list[PublicationFinding] = []
    for document in made.manifests:
        if validate_manifest(document, ""):
            continue
        tool = made.names[document["id"]]
        found += (
            PublicationFinding(tool, each.pointer, f"{each.message} {each.fix}", each.severity)
            for each in checks.check_manifest(document)
        )
        try:
            check_code(Manifest(document), made.files)
            found += (
                PublicationFinding(tool, each.pointer, f"{each.message} {each.fix}", each.severity)
                for each in checks.find_entry_differences(Manifest(document), made.files)
            )
        except EntryUnfit as error:
            found.append(PublicationFinding(tool, "/implementation/entry", str(error)))
        except PackageError as error:
            found.append(PublicationFinding(tool, "/implementation/module", str(error)))
    return found


def format_findings(findings: Iterable[PublicationFinding], places: Mapping[str, str]) -> Iterator[str]:
    """``error: quotes.py:9: get_quote /ttl_seconds: …``"""
    for each in findings:
        place = " ".join(part for part in (each.tool, each.pointer) if part)
        yield ": ".join(part for part in (each.severity, places.get(each.tool, ""), place, each.message) if part)
