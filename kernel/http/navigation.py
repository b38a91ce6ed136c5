"""Navigation: an entry of the console's menu, declared in the ``urls`` of the noun whose page it leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Section(TextChoices):
    """A group of the menu; they stand there in this order."""

    OVERVIEW = "overview", ""
    OPERATE = "operate", gettext_lazy("Operate")
    TOOLS = "tools", gettext_lazy("Tools")
    EVIDENCE = "evidence", gettext_lazy("Evidence")
    GOVERN = "govern", gettext_lazy("Govern")


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationEntry:
    """Shown to who holds the permission. Pages name it by its key as their ``section``; ``address`` is the name of a URL."""

    key: str
    label: _StrPromise
    icon: str
    address: str
    permission: str
    section: Section
    order: int
