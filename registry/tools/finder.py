"""Finder of tools: by a part of the name, the title or a tag."""

from __future__ import annotations

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from kernel.components.labels import STATUS
from kernel.http.finders import Finder, FoundThing, match_words
from registry.models import Tool, ToolKind

FINDER = Finder(
    noun=gettext_lazy("Tools"),
    icon="package",
    permission="tools.view",
    order=10,
    prefix="tol",
    rows=lambda by: Tool.objects.visible_to(by).select_related("current"),
    match=lambda text, by: match_words("name", "current__display_name")(text, by) | Q(current__tags__icontains=text),
    sort=("name",),
    show=lambda tool: FoundThing(
        tool.name,
        reverse("model" if tool.kind == ToolKind.MODEL else "tool", args=[tool.name]),
        STATUS[tool.state][2] if tool.state in STATUS else tool.state,
    ),
)
