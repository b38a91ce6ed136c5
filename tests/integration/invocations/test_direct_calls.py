"""Direct calls: does a tool that an operator trusts run directly, through the same pipeline, and in a box as soon as something
speaks against it?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.sandbox.factory import current_sandbox
from registry.versions import services
from tests.support.calls import PAIR, kinds_of, row_of
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool, ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


@pytest.fixture(autouse=True)
def _sandbox_of_its_own() -> Iterator[None]:
    current_sandbox.cache_clear()
    yield
    current_sandbox().close()
    current_sandbox.cache_clear()


@pytest.fixture
def trusted(enable: Callable[..., Tool], grant: Callable[..., Any], operator: Person) -> ToolVersion:
    version = enable(requires_sandbox=False).current
    assert version is not None
    grant()
    return services.trust_version(version_id=version.pk, reason="read line by line", by=operator.by)


def level_of(caller: Caller) -> str:
    answer = caller.invoke(ECHO, {"text": "hi"})
    assert answer.status_code == 200, answer.json()
    end = Fact.objects.get(kind="invocation.ended", invocation_id=row_of(answer).pk)
    return str(json.loads(bytes(end.leaf))["data"]["run"]["level"])


@pytest.mark.req("SVC-11")
def test_a_trusted_call_runs_directly_with_the_same_facts(trusted: ToolVersion, caller: Caller, bell: Bell) -> None:
    answer = caller.invoke(ECHO, {"text": "hi"})

    row = row_of(answer)
    assert (answer.status_code, row.state) == (200, "succeeded")
    assert kinds_of(row) == PAIR
    assert row.profile_hash
    assert row.attempts.get().image == "direct"
    assert level_of(caller) == "direct"
    assert caller.invoke(ECHO, {"text": 5}).status_code == 422  # the same checks before it


@pytest.mark.req("SVC-11")
def test_a_call_of_the_same_version_without_the_mark_runs_in_a_box(
    trusted: ToolVersion, caller: Caller, operator: Person, bell: Bell
) -> None:
    assert level_of(caller) == "direct"
    services.distrust_version(version_id=trusted.pk, reason="second thoughts", by=operator.by)

    assert level_of(caller) != "direct"


@pytest.mark.req("SVC-11")
def test_a_hub_can_do_without(trusted: ToolVersion, caller: Caller, settings: Any, bell: Bell) -> None:
    settings.TOOLHUB_DIRECT = False

    assert level_of(caller) != "direct"


@pytest.mark.req("SVC-11")
def test_a_policy_that_asks_for_a_box_of_its_own_is_heeded(
    trusted: ToolVersion, caller: Caller, tenant: Any, bell: Bell
) -> None:
    rule = {"id": "boxes", "effect": "isolation", "level": "single", "when": {"tool": {"equals": ECHO}}}
    put_in_force(permit(), rule, tenant=tenant)

    assert level_of(caller) != "direct"
