"""Manifest checks: whether a manifest can be registered in this hub, and if not, what exactly must change.

The rules that need nothing but the manifest are :mod:`unitools.checks`, which authors run as well (``unitools check``). Here are
those that ask about this hub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.version import HUB_VERSION
from registry.problems import ManifestInvalid
from unitools import checks
from unitools.checks import RULES, ManifestFinding
from unitools.checks.document import check_bounds, check_document
from unitools.checks.findings import declare_rule
from unitools.checks.models import check_is_no_model
from unitools.checks.schemas import check_schemas
from unitools.manifest import Manifest
from unitools.semver import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLATFORM_OTHER = declare_rule(
    "provider_compat.platform_other",
    "The platform range holds the version of this hub.",
    "Widen the range after trying the tool here, or use another hub.",
)


def check_platform(manifest: Manifest) -> Iterator[ManifestFinding]:
    """TOOLS-6. A range that cannot be read is a finding of its own."""
    try:
        fits = not manifest.platform or Version.parse(HUB_VERSION) in Range.parse(manifest.platform)
    except ValueError:
        return
    if not fits:
        yield PLATFORM_OTHER.at(
            ("provider_compat", "platform"),
            f"This hub is toolhub {HUB_VERSION}, which {manifest.platform} does not hold.",
        )


def validate_document(document: Any) -> list[ManifestFinding]:
    """All findings, errors first."""
    return checks.check_manifest(document, also=(check_platform,))


def check_shape(document: Any) -> None:
    """Whether everything that reads a manifest can read this one, however wrong it is otherwise. Raises :class:`ManifestInvalid`."""
    found = list(check_bounds(document)) or list(check_is_no_model(document)) or list(check_document(document))
    refuse_errors(document, found or list(check_schemas(Manifest(document))))


def refuse_errors(document: Any, findings: Sequence[ManifestFinding]) -> None:
    """Raises :class:`ManifestInvalid`, where there is an error among them."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return
    first = errors[0]
    named = str(document.get("id", ""))[:200] if isinstance(document, dict) else ""
    raise ManifestInvalid(
        f"{first.message} ({first.pointer or '/'})"
        if len(errors) == 1
        else f"The manifest has {len(errors)} errors; the first: {first.message} ({first.pointer or '/'})",
        details={"tool": named, "findings": [finding.to_json() for finding in findings]},
        remedy=first.fix,
    )


__all__ = ["RULES", "ManifestFinding", "check_platform", "check_shape", "refuse_errors", "validate_document"]
