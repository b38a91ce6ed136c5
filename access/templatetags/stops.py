"""Stop tags: what a kill switch has stopped, on every page and beside the state of a tool, a version, an installation or an agent.

What is in force is read once a request (``stops`` of the frame's context), and only by a page that shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template
from django.utils.html import format_html

from kernel.components.forms import ReasonForm
from kernel.templatetags.ui import badge

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.template.context import Context
    from django.utils.safestring import SafeString

    from access.models import Agent
    from registry.halt_notices import HaltNotices
    from registry.models import Installation, Tool, ToolVersion

register = template.Library()
SHOWN = 3  # the others are folded
WORKS = ("enabled", "approved")  # says nothing beside "Stopped"


@register.inclusion_tag("halts/stop_strip.html", takes_context=True)
def stop_strip(context: Context) -> dict[str, Any]:
    """What is stopped, by whom, why and since when; to lift it, for who may."""
    stops = context.get("stops")
    rows = stops.rows if stops else []
    return {
        "request": context.get("request"),
        "csrf_token": context.get("csrf_token"),
        "rows": rows[:SHOWN],
        "folded": rows[SHOWN:],
        "form": ReasonForm(),
    }


def _draw(context: Context, state: str, stops: Callable[[HaltNotices], bool]) -> SafeString:
    notices = context.get("stops")
    if notices is None or not stops(notices):
        return badge(state)
    return badge("stopped") if state in WORKS else format_html("{} {}", badge("stopped"), badge(state))


@register.simple_tag(takes_context=True)
def tool_state(context: Context, tool: Tool) -> SafeString:
    return _draw(context, tool.state, lambda notices: notices.stop_tool(tool))


@register.simple_tag(takes_context=True)
def installation_state(context: Context, installation: Installation) -> SafeString:
    return _draw(context, installation.state, lambda notices: notices.stop_installation(installation))


@register.simple_tag(takes_context=True)
def version_state(context: Context, version: ToolVersion) -> SafeString:
    state = "yanked" if version.yanked_at else version.review_state
    return _draw(context, state, lambda notices: notices.stop_version(version))


@register.simple_tag(takes_context=True)
def agent_state(context: Context, agent: Agent) -> SafeString:
    state = "disabled" if agent.disabled_at else "enabled"
    return _draw(context, state, lambda notices: notices.stop_agent(agent))
