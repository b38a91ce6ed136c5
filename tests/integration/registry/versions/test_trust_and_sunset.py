"""Trust and sunset: which version may run without a sandbox, and how does a tool end?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from evidence.models import Fact
from kernel.problems import Conflict, SchemaInvalid
from registry.models import Tool
from registry.problems import NotTrustable
from registry.versions import services
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"


@pytest.mark.req("SVC-11")
def test_only_a_version_without_effect_that_asks_for_no_sandbox_is_trusted(
    enable: Callable[..., Tool], operator: Person
) -> None:
    plain = enable(requires_sandbox=False).current
    walled = enable("write").current
    assert plain is not None
    assert walled is not None

    with pytest.raises(NotTrustable):
        services.trust_version(version_id=walled.pk, reason="x", by=operator.by)
    trusted = services.trust_version(version_id=plain.pk, reason="read line by line", by=operator.by)
    assert (trusted.trusted_by, trusted.trusted_at is not None) == (operator.by.id, True)
    taken = services.distrust_version(version_id=plain.pk, reason="second thoughts", by=operator.by)

    assert (taken.trusted_by, taken.trusted_at) == ("", None)
    kinds = Fact.objects.filter(kind__startswith="version.").order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["version.trusted", "version.distrusted"]


@pytest.mark.req("SVC-11")
def test_trust_and_distrust_follow_each_other(enable: Callable[..., Tool], operator: Person) -> None:
    version = enable(requires_sandbox=False).current
    assert version is not None

    with pytest.raises(Conflict):
        services.distrust_version(version_id=version.pk, reason="x", by=operator.by)
    services.trust_version(version_id=version.pk, reason="x", by=operator.by)
    with pytest.raises(Conflict):
        services.trust_version(version_id=version.pk, reason="x", by=operator.by)


# The end of a tool.


def test_a_deprecated_tool_says_so_in_headers_and_names_what_to_use(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person, bell: Bell
) -> None:
    enable()
    enable("write")
    grant()
    sunset = timezone.now().date() + timedelta(days=30)
    done = services.deprecate_tool(
        name=ECHO, reason="It is slow.", sunset_on=sunset, successor="sample.tools.write", by=operator.by
    )
    envelope = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}}

    for answer in (
        caller.invoke(ECHO, {}),
        caller.post(f"/tools/{ECHO}/preflight", envelope),
        caller.get(f"/tools/{ECHO}"),
    ):
        assert answer.status_code == 200, answer.json()
        assert answer.headers["Deprecation"] == f"@{int(done.state_changed_at.timestamp())}"
        assert answer.headers["Sunset"].endswith(f"{sunset:%d %b %Y} 23:59:59 GMT")
        assert 'rel="deprecation"' in answer.headers["Link"]
        assert '/api/v1/tools/sample.tools.write>; rel="successor-version"' in answer.headers["Link"]
        assert "Use sample.tools.write instead." in " ".join(answer.json()["warnings"])
    assert "Deprecation" not in caller.get("/tools/sample.tools.write").headers


def test_after_its_sunset_a_tool_is_gone(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], operator: Person
) -> None:
    enable()
    grant()
    today = timezone.now().date()
    services.deprecate_tool(name=ECHO, reason="old", sunset_on=today, by=operator.by)
    Tool.objects.update(sunset_on=today - timedelta(days=1))

    assert_problem(caller.invoke(ECHO, {}), 410, "TOOL.RETIRED")


@pytest.mark.parametrize("successor", [ECHO, "sample.tools.nothing"])
def test_a_successor_is_another_tool_that_can_be_used(
    successor: str, enable: Callable[..., Tool], operator: Person
) -> None:
    enable()

    with pytest.raises(SchemaInvalid) as caught:
        services.deprecate_tool(
            name=ECHO, reason="old", sunset_on=timezone.now().date(), successor=successor, by=operator.by
        )
    assert caught.value.details["findings"][0]["pointer"] == "/successor"


@pytest.mark.req("TOOLS-6")
def test_what_a_manifest_says_about_its_own_parts_is_among_the_warnings(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any], bell: Bell
) -> None:
    advice = {"pointer": "/input_schema/properties/text", "since": "1.0.0", "advice": "Send `body`."}
    enable(deprecations=[advice])
    grant()

    said = "/input_schema/properties/text is deprecated since 1.0.0: Send `body`."
    assert said in caller.invoke(ECHO, {}).json()["warnings"]
    assert said in caller.get(f"/tools/{ECHO}").json()["warnings"]
