"""Publications: what an author hands to a hub, the manifests and files, and what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.manifest_validation import PublicationFinding, validate_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)")


@dataclass(frozen=True, slots=True)
class Publication:
    """Manifests of one package, and its files by names that begin with ``package/``. ``names``: hub id → the author's name.

    ``places``: the author's name → where it is written.
    """

    package: str
    manifests: tuple[dict[str, Any], ...]
    files: Mapping[str, bytes]
    names: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[PublicationFinding, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[PublicationFinding, ...]:
        return tuple(each for each in self.findings if each.severity == "error")


def check_group(name: str) -> str:
    """``group.package``, under which the tools stand in a hub. ``ValueError`` with a sentence for any other name."""
    if not _NAME.fullmatch(name) or len(name) > 100:
        raise ValueError(
            f"{name!r} is no name for tools in a hub: it is group.package, two words of small letters, digits and _."
        )
    if name.startswith("model."):
        raise ValueError(f"{name!r} is no name for tools in a hub: the group model is for the models that it connects.")
    return name


def derive_package_name(group: str) -> str:
    """The folder in which code of ``group.package`` travels."""
    return group.replace(".", "_")


def find_id_collisions(ids: Mapping[str, list[str]]) -> list[PublicationFinding]:
    """Ids that several names lead to."""
    return [
        PublicationFinding(names[0], "/id", f"{' and '.join(names)} would both be {id} in a hub. Rename one of them.")
        for id, names in ids.items()
        if len(names) > 1
    ]


def validate_document(document: dict[str, Any], tool: str) -> list[PublicationFinding]:
    """What is wrong with a finished manifest."""
    return validate_manifest(document, tool)
