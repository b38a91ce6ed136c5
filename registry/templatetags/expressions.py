"""Expression tags: what an expression in a form names, said beside its field while it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import template

from registry.tools.expression_matches import list_arguments, list_expressions, load_subjects, match_tools

if TYPE_CHECKING:
    from django.forms import BoundField
    from django.template.context import Context

register = template.Library()
OFFERED = 500


@register.inclusion_tag("tools/matches_beside.html", takes_context=True)
def expression_matches(context: Context, tools: BoundField) -> dict[str, Any]:
    """What is in the field now, asked again as it changes; and the usual expressions, which the field offers."""
    subjects = load_subjects(context["request"].principal)
    text = str(tools.value() or "")
    matches = match_tools(text, subjects) if text else None
    return {
        "field": tools,
        "matches": matches,
        "arguments": list_arguments(matches.names, by=context["request"].principal) if matches else [],
        "offered": list_expressions(subjects)[:OFFERED],
    }


@register.inclusion_tag("tools/matches.html", takes_context=True)
def expression_names(context: Context, tools: str) -> dict[str, Any]:
    """What an expression that is in force names now."""
    return {"matches": match_tools(tools, load_subjects(context["request"].principal))}
