"""Finder of versions: by the name of the tool with a number, "quote 2.1"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from kernel.http.finders import Finder, FoundThing, match_words
from registry.models import ToolKind, ToolVersion

if TYPE_CHECKING:
    from kernel.principal import Principal

_NUMBER = re.compile(r"v?(\d+(?:\.\d+)*\S*)")


def match_version(text: str, by: Principal) -> Q | None:
    """None without a number: the versions of a tool are on its page."""
    *words, last = text.split() or [""]
    number = _NUMBER.fullmatch(last)
    if number is None:
        return None
    named = match_words("tool__name")(" ".join(words), by) if words else Q()
    return named & Q(version__startswith=number[1])


FINDER = Finder(
    noun=gettext_lazy("Versions"),
    icon="box",
    permission="tools.view",
    order=20,
    prefix="tvn",
    rows=lambda by: (
        ToolVersion.objects.filter(tool__tenant_id=by.tenant_id, tool__kind=ToolKind.TOOL)
        .select_related("tool")
        .defer("manifest", "changes")
    ),
    match=match_version,
    show=lambda version: FoundThing(
        f"{version.tool.name} {version.version}", reverse("version", args=[version.pk]), version.review_state
    ),
)
