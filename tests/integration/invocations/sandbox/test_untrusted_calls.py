"""Untrusted calls: does a call that a policy calls untrusted run only where the walls for it are?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db


def untrusted(**when: Any) -> dict[str, Any]:
    return {"id": "nobodys", "effect": "isolation", "when": when, "untrusted": True}


@pytest.mark.req("TOOLS-17")
def test_an_untrusted_call_does_not_run_where_no_walls_are(
    tenant: Tenant, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    """The sandbox of these tests has none."""
    enable("echo")
    grant()
    assert caller.invoke("sample.tools.echo", {"text": "a"}).status_code == 200
    put_in_force(permit(), untrusted(tool={"matches": "sample.*"}), tenant=tenant)

    answer = caller.invoke("sample.tools.echo", {"text": "b"})

    assert_problem(answer, 503, "SANDBOX.START_FAILED")
    row = row_of(answer)
    assert kinds_of(row) == PAIR
    assert b"tenant@1#nobodys" in bytes(Fact.objects.get(invocation_id=row.pk, kind="invocation.began").leaf)


@pytest.mark.req("TOOLS-17")
def test_the_rule_is_for_the_calls_that_it_names(
    tenant: Tenant, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable("echo")
    grant()
    put_in_force(permit(), untrusted(tool={"matches": "other.*"}), tenant=tenant)

    assert caller.invoke("sample.tools.echo", {"text": "a"}).status_code == 200
