"""Navigation: the few entries of the console's sidebar, one for each job, and the pages that each leads to.

A page is declared in the ``urls`` of its noun, with the job that it belongs to. The sidebar leads to the first page of a job that a
person may see; the others stand above each of them as tabs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Section(TextChoices):
    """A group of the sidebar; they stand there in this order."""

    OVERVIEW = "overview", ""
    OPERATE = "operate", gettext_lazy("Operate")
    TOOLS = "tools", gettext_lazy("Tools")
    EVIDENCE = "evidence", gettext_lazy("Evidence")
    GOVERN = "govern", gettext_lazy("Govern")


class Job(TextChoices):
    """What somebody comes for: an entry of the sidebar. There are at most twelve, or nobody reads them."""

    OVERVIEW = "overview", gettext_lazy("Overview")
    INVOCATIONS = "invocations", gettext_lazy("Invocations")
    APPROVALS = "approvals", gettext_lazy("Approvals")
    OPERATIONS = "operations", gettext_lazy("Stops and health")
    CATALOGUE = "catalogue", gettext_lazy("Catalogue")
    REVIEWS = "reviews", gettext_lazy("Review queue")
    BUILD = "build", gettext_lazy("Build tools")
    EVIDENCE = "evidence", gettext_lazy("Evidence")
    AGENTS = "agents", gettext_lazy("Agents and grants")
    POLICY = "policy", gettext_lazy("Policy")
    BUDGETS = "budgets", gettext_lazy("Budgets and spending")
    PEOPLE = "people", gettext_lazy("People and settings")


# Where each stands, and its icon.
PLACES: dict[Job, tuple[Section, str]] = {
    Job.OVERVIEW: (Section.OVERVIEW, "layout-dashboard"),
    Job.INVOCATIONS: (Section.OPERATE, "list-tree"),
    Job.APPROVALS: (Section.OPERATE, "user-check"),
    Job.OPERATIONS: (Section.OPERATE, "hand"),
    Job.CATALOGUE: (Section.TOOLS, "package"),
    Job.REVIEWS: (Section.TOOLS, "git-compare"),
    Job.BUILD: (Section.TOOLS, "file-json-2"),
    Job.EVIDENCE: (Section.EVIDENCE, "scroll-text"),
    Job.AGENTS: (Section.GOVERN, "bot"),
    Job.POLICY: (Section.GOVERN, "scale"),
    Job.BUDGETS: (Section.GOVERN, "timer"),
    Job.PEOPLE: (Section.GOVERN, "users"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationEntry:
    """A page of a job, shown to who holds the permission. Pages name it by its key as their ``section``; ``address`` is the name of a
    URL.
    """

    key: str
    label: _StrPromise
    icon: str
    address: str
    permission: str
    job: Job
    order: int
