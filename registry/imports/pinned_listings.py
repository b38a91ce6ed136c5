"""Pinned listings: what a server listed when a version was brought, as its package has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings

from registry.capsules.services import load_content
from unitools.capsules import open_capsule
from unitools.mcp_listings import LISTING_FILE, Listing, ListingUnfit
from unitools.packages import PackageError, find_shipped, read_package_files

if TYPE_CHECKING:
    from registry.models import ToolVersion


class PinnedListings:
    """Those of several versions, each package opened once."""

    def __init__(self) -> None:
        self._opened: dict[object, Listing | None] = {}

    def read(self, version: ToolVersion) -> Listing | None:
        """None: its package is not to be had any more, or holds no list."""
        key = (version.capsule_id or version.pk, version.view.package)
        if key not in self._opened:
            self._opened[key] = _read_listing(version)
        return self._opened[key]


def _read_listing(version: ToolVersion) -> Listing | None:
    data = _read_files(version).get(f"{version.view.package}/{LISTING_FILE}")
    try:
        return None if data is None else Listing.from_bytes(data)
    except ListingUnfit:
        return None


def _read_files(version: ToolVersion) -> dict[str, bytes]:
    if version.capsule_id is not None:
        return dict(open_capsule(load_content(version.capsule_id)).files)
    try:
        return dict(read_package_files(find_shipped(version.view, settings.TOOLHUB_TOOLS_PATH)))
    except (PackageError, OSError):
        return {}
