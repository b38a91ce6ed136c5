"""What is a caller told about a tool that will go away?

As headers (RFC 9745 ``Deprecation``, RFC 8594 ``Sunset``, and links to what to use instead), and as sentences among the
warnings: the tool's own end, and what its manifest says about parts of it.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, Protocol

from django.conf import settings
from django.utils.http import http_date

from registry.models import ToolState

if TYPE_CHECKING:
    from datetime import date

    from unitools.manifest import Manifest

    class Deprecable(Protocol):
        """A tool, or what was read of one."""

        @property
        def name(self) -> str: ...
        @property
        def state(self) -> str: ...
        @property
        def state_reason(self) -> str: ...
        @property
        def state_changed_at(self) -> datetime: ...
        @property
        def sunset_on(self) -> date | None: ...
        @property
        def successor(self) -> str: ...


def sunset_at(sunset_on: date) -> datetime:
    """It answers until the end of that day."""
    return datetime.combine(sunset_on, time(23, 59, 59), tzinfo=UTC)


def deprecation_headers(tool: Deprecable) -> dict[str, str]:
    """For every answer that is about this tool; empty unless it is deprecated."""
    if tool.state != ToolState.DEPRECATED:
        return {}
    base = settings.TOOLHUB_PUBLIC_URL
    links = [f'<{base}/tools/{tool.name}>; rel="deprecation"; type="text/html"']
    if tool.successor:
        links.append(f'<{base}/api/v1/tools/{tool.successor}>; rel="successor-version"')
    headers = {"Deprecation": f"@{int(tool.state_changed_at.timestamp())}", "Link": ", ".join(links)}
    if tool.sunset_on is not None:
        headers["Sunset"] = http_date(sunset_at(tool.sunset_on).timestamp())
    return headers


def deprecation_warnings(tool: Deprecable, manifest: Manifest | None) -> list[str]:
    """What to do, in sentences."""
    said = []
    if tool.state == ToolState.DEPRECATED:
        until = f" and answers until {tool.sunset_on}" if tool.sunset_on else ""
        instead = f" Use {tool.successor} instead." if tool.successor else ""
        said.append(f"{tool.name} is deprecated{until}. {tool.state_reason}{instead}".strip())
    return said + (advice_of(manifest) if manifest is not None else [])


def advice_of(manifest: Manifest) -> list[str]:
    """The manifest's own ``deprecations``."""
    said = []
    for each in manifest.document.get("deprecations", []):
        what = each["pointer"] or "The whole tool"
        until = f" It goes away on {each['sunset']}." if each.get("sunset") else ""
        instead = f" Use {each['successor']} instead." if each.get("successor") else ""
        said.append(f"{what} is deprecated since {each['since']}: {each['advice']}{until}{instead}")
    return said
