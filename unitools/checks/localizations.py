"""Localizations: whether what a manifest says in further languages is there once for each, and says something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unitools.checks.findings import declare_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.checks.findings import ManifestFinding
    from unitools.manifest import Manifest

TWICE = declare_rule(
    "localizations.twice",
    "A language has one localization: tags that differ by case alone are one language.",
    "Put the texts of the language under one tag.",
)


def check_localizations(manifest: Manifest) -> Iterator[ManifestFinding]:
    seen: dict[str, str] = {}
    for tag in manifest.localizations:
        first = seen.setdefault(tag.lower(), tag)
        if first != tag:
            yield TWICE.at(("localizations", tag), f"{tag} and {first} are one language.")
