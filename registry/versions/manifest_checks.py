"""Manifest checks: whether a manifest can be registered in this hub, and if not, what exactly must change.

The rules that need nothing but the manifest are :mod:`unitools.checks`, which authors run as well (``unitools check``). Here are
those that ask about this hub.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel.version import HUB_VERSION
from unitools import checks
from unitools.checks import RULES, ManifestFinding
from unitools.checks.findings import declare_rule
from unitools.semver import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.manifest import Manifest

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


__all__ = ["RULES", "ManifestFinding", "check_platform", "validate_document"]
