"""Run profiles: are calls run that the web of the release before accepts while an upgrade goes on, and is a profile written once?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from invocations.models import Invocation
from invocations.run_profiles.models import RunProfile

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db


@pytest.mark.req("TOOLS-14")
@pytest.mark.parametrize(
    ("more", "state"), [({}, "succeeded"), ({"net": [{"hosts": ["*"]}]}, "cancelled")], ids=["as decided", "widened"]
)
def test_a_call_whose_profile_only_its_row_has_runs_within_it(
    more: dict[str, Any],
    state: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    enable()
    grant()
    caller.invoke("sample.tools.echo", {"text": "x"}, headers={"Prefer": "respond-async"})
    row = Invocation.objects.get()
    kept = RunProfile.objects.filter(tenant_id=row.tenant_id, digest=row.profile_hash)
    document = kept.get().document | more
    with connection.cursor() as cursor:
        cursor.execute("UPDATE invocations_invocation SET profile = %s WHERE id = %s", [json.dumps(document), row.pk])
    assert kept.delete()[0]

    bell.deliver()

    row.refresh_from_db()
    assert row.state == state


@pytest.mark.req("TOOLS-14")
def test_a_profile_that_is_there_is_neither_written_nor_locked(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()

    def call() -> list[Any]:
        """And the place of each profile, who wrote it, and who locked it last."""
        caller.invoke("sample.tools.echo", {"text": "x"})
        with connection.cursor() as cursor:
            cursor.execute("SELECT ctid::text, xmin::text, xmax::text FROM invocations_runprofile")
            return list(cursor.fetchall())

    first, second = call(), call()

    assert len(first) == 1
    assert second == first
    assert Invocation.objects.filter(state="succeeded").count() == 2
