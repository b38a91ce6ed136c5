"""Manifest words: what a manifest says of its tool, as people read it. A word of its author's own is shown as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy, pgettext_lazy

if TYPE_CHECKING:
    from kernel.components.labels import Text

RISK: dict[str, tuple[str, int, Text]] = {
    "high": ("bad", 3, gettext_lazy("High risk")),
    "medium": ("warn", 2, gettext_lazy("Medium risk")),
    "low": ("quiet", 1, gettext_lazy("Low risk")),
}
RISK_LEVEL: dict[str, Text] = {
    "High": pgettext_lazy("risk", "High"),
    "Medium": pgettext_lazy("risk", "Medium"),
    "Low": pgettext_lazy("risk", "Low"),
}
EFFECT: dict[str, Text] = {
    "None": pgettext_lazy("effect of a tool", "None"),
    "Read": pgettext_lazy("effect of a tool", "Read"),
    "Write": pgettext_lazy("effect of a tool", "Write"),
    "Network": pgettext_lazy("effect of a tool", "Network"),
    "Filesystem": pgettext_lazy("effect of a tool", "Filesystem"),
    "Browser": pgettext_lazy("effect of a tool", "Browser"),
    "Process": pgettext_lazy("effect of a tool", "Process"),
}
DATA_CLASS: dict[str, Text] = {
    "personal": pgettext_lazy("class of data", "personal"),
    "payment": pgettext_lazy("class of data", "payment"),
    "health": pgettext_lazy("class of data", "health"),
    "location": pgettext_lazy("class of data", "location"),
    "credentials": pgettext_lazy("class of data", "credentials"),
}
OPERATION: dict[str, Text] = {
    "chat": pgettext_lazy("operation of a model", "chat"),
    "embed": pgettext_lazy("operation of a model", "embedding"),
    "rerank": pgettext_lazy("operation of a model", "ranking"),
}
# Where a request carries a value.
PLACE: dict[str, Text] = {
    "path": pgettext_lazy("place in a request", "path"),
    "query": pgettext_lazy("place in a request", "query"),
    "header": pgettext_lazy("place in a request", "header"),
    "cookie": pgettext_lazy("place in a request", "cookie"),
    "body": pgettext_lazy("place in a request", "body"),
}
