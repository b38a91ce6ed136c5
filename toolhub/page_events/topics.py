"""Topics: what a page may ask to hear of, who may hear it, and which facts are news of it.

Every change is witnessed by a fact in its own transaction, so new facts say all that has changed, whoever changed it. What changes
without one, like the progress of a run, is read beside them (:mod:`toolhub.page_events.progress`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidence.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.principal import Principal

# Every page may hear of its session and of its person's own permissions: nothing is said of them but that the stream ends.
PERMISSIONS: dict[str, str] = {
    "agent_runs": "invocations.view",
    "approvals": "consents.view",
    "budgets": "budgets.view",
    "calls": "invocations.view",
    "chains": "invocations.view",
    "dependencies": "tools.view",
    "erasures": "evidence.erase",
    "exports": "evidence.view",
    "facts": "evidence.view",
    "halts": "invocations.view",  # what is stopped stands on every page
    "imports": "tools.submit",
    "replays": "invocations.replay",
    "reviews": "tools.review",
    "tools": "tools.view",
    "trials": "tools.review",
    "verifications": "evidence.view",
}

# By the first word of a fact's kind.
BY_NOUN: dict[str, tuple[str, ...]] = {
    "agent_run": ("agent_runs",),
    "budget": ("budgets",),
    "chain": ("chains",),
    "consent": ("approvals",),
    "delegation": ("approvals",),
    "dependencies": ("dependencies",),
    "dry_run": ("calls", "approvals"),
    "erasure": ("erasures",),
    "export": ("exports",),
    "grant": ("approvals",),
    "halt": ("halts",),
    "import": ("imports",),
    "installation": ("tools",),
    "invocation": ("calls", "budgets"),
    "replay": ("replays", "trials"),
    "request": ("calls",),
    "subject": ("erasures",),
    "tool": ("tools", "reviews"),
    "verification": ("verifications",),
    "version": ("tools", "reviews"),
    "words": ("erasures",),
}
# What a person may do may have become another thing.
OF_PEOPLE = frozenset(
    {
        Kind.MEMBERSHIP_GIVEN,
        Kind.MEMBERSHIP_ENDED,
        Kind.PERMISSION_GIVEN,
        Kind.PERMISSION_TAKEN,
        Kind.PERSON_PASSWORD_SET,
        Kind.CONFIGURATION_APPLIED,
    }
)


def find_topics(kinds: Iterable[str]) -> set[str]:
    """What facts of these kinds are news of."""
    found = {"facts"} if kinds else set[str]()
    return found.union(*(BY_NOUN.get(kind.partition(".")[0], ()) for kind in kinds))


def list_topics_for(principal: Principal) -> frozenset[str]:
    return frozenset(topic for topic, permission in PERMISSIONS.items() if principal.may(permission))
