"""Hub set-up: the tool of a measured hub for calls that are to cost nothing in the tool itself. Run with the hub's environment.

After `seed_demo`, and through the same services as everything else: of the sample tools of the tests one that returns what it gets,
and one that sleeps until it is ended; for the agent of the demonstration.
"""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402

from access import services as access  # noqa: E402
from access.budgets.services import change_budget  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Agent, Budget, Tenant  # noqa: E402
from registry.models import Decision  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.support.manifests import manifest  # noqa: E402


def main() -> None:
    tenant = Tenant.objects.get(slug="demo")
    people = get_user_model().objects
    dana, olivia = (principal_of_user(people.get(username=name), tenant) for name in ("dana", "olivia"))
    for document in (manifest("echo"), manifest("sleeps", timeout_ms=1000)):
        version = registry.submit_version(document=document, by=dana)
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=olivia)
        registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="To measure.", by=olivia)
    for budget in Budget.objects.filter(tenant=tenant, ended_at=None):  # they are kept, and are never in the way
        change_budget(budget_id=budget.pk, amount=10**12, reason="To measure.", by=olivia)
    access.give_grant(agent_id=Agent.objects.get(tenant=tenant).pk, tools="sample.*", reason="To measure.", by=olivia)


if __name__ == "__main__":
    main()
