"""Time limits: does a call that ran out of time say which limit it was, and who set it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.sandbox.results import IDLE, PROCESSOR
from tests.support.calls import assert_problem
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


def rule(ms: int, **when: Any) -> dict[str, Any]:
    return {"id": "quick-ones", "effect": "ceiling", "limits": {"timeout_ms": ms}, **({"when": when} if when else {})}


@pytest.mark.req("SVC-7", "TOOLS-24")
@pytest.mark.parametrize(
    ("asks", "granted", "ruled", "ms", "setter", "words"),
    [
        ({"timeout_ms": 20_000}, None, None, 20_000, {"set_by": "manifest"}, "which the tool's manifest sets"),
        ({"timeout_ms": None}, None, None, 10_000, {"set_by": "hub"}, "which the hub gives"),
        ({"timeout_ms": 20_000}, 3_000, None, 3_000, {"set_by": "grant"}, "which the grant sets"),
        ({"timeout_ms": 20_000}, 3_000, 1_000, 1_000, {"set_by": "policy"}, "#quick-ones of a policy sets"),
        ({"timeout_ms": 20_000}, 1_000, 3_000, 1_000, {"set_by": "grant"}, "which the grant sets"),
    ],
)
def test_a_call_that_is_stopped_names_the_limit_that_stopped_it_and_who_set_it(
    asks: dict[str, int | None],
    granted: int | None,
    ruled: int | None,
    ms: int,
    setter: dict[str, str],
    words: str,
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    tenant: Any,
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable(**asks)
    grant(**({"capabilities": {"limits": {"timeout_ms": granted}}} if granted else {}))
    if ruled:
        put_in_force(permit("all"), rule(ruled), tenant=tenant)
    sandbox.outcome = RunOutcome(RunStatus.TIMED_OUT, error_message="why", box="b")

    error = assert_problem(caller.invoke(ECHO, {"text": "x"}), 504, "SANDBOX.TIMEOUT")["error"]

    assert f"within {ms:,} ms, " in error["message"]
    assert words in error["message"]
    assert error["details"]["timeout_ms"] == ms == sandbox.calls[0][0].limits.wall_ms
    assert {"set_by": error["details"]["set_by"]} == setter
    assert error["details"].get("rule", "").endswith("#quick-ones") == bool(setter["set_by"] == "policy")


@pytest.mark.req("SVC-7", "TOOLS-24")
@pytest.mark.parametrize(
    ("code", "words", "details"),
    [
        (IDLE, "said nothing for 500 ms, which the tool's manifest sets", {"limit": "idle_ms", "idle_ms": 500}),
        (PROCESSOR, "of processor time, which the tool's manifest sets", {"limit": "cpu_ms"}),
    ],
)
def test_a_clock_other_than_the_walls_is_named_as_what_it_is(
    code: str,
    words: str,
    details: dict[str, Any],
    caller: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    enable(timeout_ms=20_000, limits={"idle_ms": 500})
    grant()
    sandbox.outcome = RunOutcome(RunStatus.TIMED_OUT, error_code=code, error_message="why", box="b")

    error = assert_problem(caller.invoke(ECHO, {"text": "x"}), 504, "SANDBOX.TIMEOUT")["error"]

    assert words in error["message"]
    assert details.items() <= error["details"].items()


@pytest.mark.req("SVC-7")
def test_the_pages_of_a_tool_and_of_its_review_say_who_sets_the_time_limit(
    enable: Callable[..., Tool], submit: Callable[..., Any], operator: Person, tenant: Any
) -> None:
    version = enable(timeout_ms=20_000).current
    assert version is not None
    waiting = submit("echo", version="1.1.0", timeout_ms=20_000)
    client = operator.client()
    pages = (f"/tools/{ECHO}", f"/versions/{version.wire_id}", f"/reviews/{waiting.wire_id}")

    for page in pages:
        assert "set by the manifest" in client.get(page).content.decode(), page
    put_in_force(permit("all"), rule(1_000), tenant=tenant)
    for page in pages:
        shown = " ".join(client.get(page).content.decode().split())
        assert "1 s · set by the policy rule" in shown.replace("&#x27;", "'"), page
        assert "#quick-ones; the tool asks for 20 s" in shown, page
