"""Finder of tools: by a part of the name, the title in any of its languages, or a tag."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from kernel.components.labels import STATUS
from kernel.http.finders import MOST_WORDS, Finder, FoundThing, match_words
from registry.discovery.search import tokenize_text
from registry.models import Tool, ToolKind

if TYPE_CHECKING:
    from kernel.principal import Principal


def match_tool(text: str, by: Principal) -> Q:
    named = match_words("name", "current__display_name")(text, by) | Q(current__tags__icontains=text)
    words = [Q(current__title_words__contains=word) for word in tokenize_text(text)[:MOST_WORDS]]
    return named | reduce(and_, words) if words else named


FINDER = Finder(
    noun=gettext_lazy("Tools"),
    icon="package",
    permission="tools.view",
    order=10,
    prefix="tol",
    rows=lambda by: Tool.objects.visible_to(by).select_related("current"),
    match=match_tool,
    sort=("name",),
    show=lambda tool: FoundThing(
        tool.name,
        reverse("model" if tool.kind == ToolKind.MODEL else "tool", args=[tool.name]),
        STATUS[tool.state][2] if tool.state in STATUS else tool.state,
    ),
)
