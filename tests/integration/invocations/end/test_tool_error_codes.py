"""Tool error codes: may a tool say "no" with a code of its own?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.end.problems import DOMAIN_PROBLEMS
from invocations.sandbox.base import RunOutcome, RunStatus
from kernel.problems import PlatformCode
from tests.support.calls import assert_problem, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
OURS_ALONE = sorted(set(map(str, PlatformCode)) - set(DOMAIN_PROBLEMS))


@pytest.fixture(autouse=True)
def callable_echo(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell) -> None:
    enable()
    grant()


def says(sandbox: ScriptedSandbox, code: str) -> None:
    sandbox.outcome = RunOutcome(
        RunStatus.DOMAIN_ERROR, error_code=code, error_message="canary-5f3a", error_details={"n": 3}
    )


@pytest.mark.req("SPEC-6")
def test_what_only_the_hub_says_is_not_a_tools_to_say() -> None:
    assert OURS_ALONE == ["FORBIDDEN", "INTERNAL", "RATE_LIMITED", "TIMEOUT", "UNAUTHORIZED"]


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize(
    "code",
    [
        *OURS_ALONE,
        "MY_OWN_CODE",
        "out_of_stock",
        "OUT_OF_STOCK ",
        "DOMAIN.OUT_OF_STOCK",
        "TOOL.EXECUTION_FAILED",
        "UNKNOWN.INTERNAL",
        "A" * 64,
        "A" * 65,
        "A" * 10_000,
        "",
        "缺货",
        "<script>",
    ],
)
def test_a_code_of_its_own_is_a_tool_that_failed(code: str, caller: Caller, sandbox: ScriptedSandbox) -> None:
    says(sandbox, code)

    answer = caller.invoke(ECHO, {})

    error = assert_problem(answer, 502, "TOOL.EXECUTION_FAILED")["error"]
    assert (error["code"], error["error_type"]) == ("UPSTREAM_ERROR", "TOOL_EXECUTION_ERROR")
    assert "canary-5f3a" not in answer.content.decode()
    assert len(answer.content) < 4096
    assert (row_of(answer).state, row_of(answer).reason) == ("failed", "TOOL.EXECUTION_FAILED")


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize("code", sorted(DOMAIN_PROBLEMS))
def test_a_code_of_the_closed_set_reaches_the_caller_with_the_tools_words(
    code: str, caller: Caller, sandbox: ScriptedSandbox
) -> None:
    says(sandbox, code)

    error = caller.invoke(ECHO, {}).json()["error"]

    platform_code = "INVALID_ARGUMENT" if code == "MODEL_RETRY" else code
    assert (error["code"], error["message"], error["details"]) == (platform_code, "canary-5f3a", {"n": 3})
    assert error["reason"] == f"DOMAIN.{code}"
