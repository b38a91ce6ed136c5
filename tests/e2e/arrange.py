"""Sample tools: which sample tools does the demonstration agent of a tested hub have? Run with the hub's environment.

Migrates and seeds first, in the same process, because loading the application takes most of the time. The sample tools go
through the same services as everything else; `test_console_walk` does the same with a browser.
"""

from __future__ import annotations

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()  # models can be imported only from here on

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402

from access import services as access  # noqa: E402
from access.middleware import principal_of_user  # noqa: E402
from access.models import Agent, Tenant  # noqa: E402
from registry.models import Decision  # noqa: E402
from registry.versions import services as registry  # noqa: E402
from tests.support.manifests import manifest  # noqa: E402

LONG_MS = 30_000
TOOLS: dict[str, dict[str, Any]] = {
    "echo": {},
    "raises": {},
    "crashes": {},
    "sleeps": {"timeout_ms": LONG_MS},
    "short_sleep": {"implementation": {"module": "sample.tools", "entry": "sleeps"}, "timeout_ms": 500},
    "wrong_shape": {"output_schema": {"type": "object", "properties": {"answer": {"type": "integer"}}}},
}
HOSTILE = (
    "reads_file",
    "reads_all_it_can",
    "connects",
    "shows_environment",
    "runs_program",
    "leaves_something",
    "looks_for_leftovers",
    "keeps_a_secret",
    "hides_in_noise",
    "reaches_for_an_unspeakable_name",
    "names_many_sources",
)


def documents() -> list[dict[str, Any]]:
    hostile = [
        manifest(
            name,
            input_schema={"type": "object"},  # each takes arguments of its own
            implementation={"module": "sample.hostile", "entry": name},
            timeout_ms=15_000,
        )
        for name in HOSTILE
    ]
    return [manifest(name, **changes) for name, changes in TOOLS.items()] + hostile


def main() -> None:
    call_command("init")
    call_command("seed_demo")
    tenant = Tenant.objects.get(slug="demo")
    people = get_user_model().objects
    dana, olivia = (principal_of_user(people.get(username=name), tenant) for name in ("dana", "olivia"))
    for document in documents():
        version = registry.submit_version(document=document, by=dana)
        registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=olivia)
        registry.enable_tool(name=version.tool.name, version_id=version.pk, reason="For a test.", by=olivia)
    agent = Agent.objects.get(tenant=tenant)
    access.give_grant(agent_id=agent.pk, tools="sample.*", reason="For a test.", by=olivia)


if __name__ == "__main__":
    main()
