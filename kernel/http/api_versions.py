"""API versions: which form of the API a program was written for, as a date.

A new date comes only with a change that a correct program could notice to its harm; what may change without one is promised in
docs/reference/api-versions.md. Answers name the version that made them, and a request may ask for one by the same header, so that
a program which was tested against it is refused, not answered otherwise, by a hub that no longer has it.
"""

from __future__ import annotations

from kernel.problems import UnknownApiVersion

HEADER_API_VERSION = "Toolhub-Version"
API_VERSIONS = ("2026-11-28",)  # all that are served, the newest first
API_VERSION = API_VERSIONS[0]


def check_api_version(wanted: str) -> None:
    """Refuse a version that is not served; none is the newest."""
    if wanted and wanted not in API_VERSIONS:
        raise UnknownApiVersion(
            f"This hub has no version {wanted[:40]!r} of its API.", details={"versions": list(API_VERSIONS)}
        )
