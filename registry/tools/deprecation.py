"""Deprecation: what a caller is told about a tool that will go away.

As headers (RFC 9745 ``Deprecation``, RFC 8594 ``Sunset``, and links to what to use instead), and as sentences among the
warnings: the tool's own end, and what its manifest says about parts of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.http import http_date

from registry.models import ToolState

if TYPE_CHECKING:
    from registry.decision_context import DecisionContext
    from registry.models import Tool
    from unitools.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Retirement:
    """A deprecated tool: why and since when, until when it answers, and what takes its place."""

    tool: str
    reason: str
    since: datetime
    sunset_on: date | None
    successor: str

    @property
    def sunset_at(self) -> datetime | None:
        """It answers until the end of that day."""
        return datetime.combine(self.sunset_on, time(23, 59, 59), tzinfo=UTC) if self.sunset_on else None

    def headers(self) -> dict[str, str]:
        base = settings.TOOLHUB_PUBLIC_URL
        links = [f'<{base}/tools/{self.tool}>; rel="deprecation"; type="text/html"']
        if self.successor:
            links.append(f'<{base}/api/v1/tools/{self.successor}>; rel="successor-version"')
        headers = {"Deprecation": f"@{int(self.since.timestamp())}", "Link": ", ".join(links)}
        return headers | ({"Sunset": http_date(self.sunset_at.timestamp())} if self.sunset_at else {})

    def sentence(self) -> str:
        until = f" and answers until {self.sunset_on}" if self.sunset_on else ""
        instead = f" Use {self.successor} instead." if self.successor else ""
        return f"{self.tool} is deprecated{until}. {self.reason}{instead}".strip()


def find_retirement(tool: Tool) -> Retirement | None:
    """None unless the tool is deprecated."""
    if tool.state != ToolState.DEPRECATED:
        return None
    return Retirement(tool.name, tool.state_reason, tool.state_changed_at, tool.sunset_on, tool.successor)


def context_retirement(decision_context: DecisionContext) -> Retirement | None:
    """The same, of the tool that a call is about."""
    installed = decision_context.installed
    if installed is None or installed.tool_state != ToolState.DEPRECATED:
        return None
    return Retirement(
        decision_context.tool,
        installed.tool_reason,
        installed.tool_changed_at,
        installed.sunset_on,
        installed.successor,
    )


def deprecation_headers(retirement: Retirement | None) -> dict[str, str]:
    return retirement.headers() if retirement else {}


def deprecation_warnings(retirement: Retirement | None, manifest: Manifest | None) -> list[str]:
    """What to do, in sentences: the tool's end, then the manifest's own ``deprecations``."""
    return [*([retirement.sentence()] if retirement else []), *(list_advice(manifest) if manifest else [])]


def list_advice(manifest: Manifest) -> list[str]:
    said = []
    for each in manifest.deprecations:
        until = f" It goes away on {each['sunset']}." if each.get("sunset") else ""
        instead = f" Use {each['successor']} instead." if each.get("successor") else ""
        what = each["pointer"] or "The whole tool"
        said.append(f"{what} is deprecated since {each['since']}: {each['advice']}{until}{instead}")
    return said
