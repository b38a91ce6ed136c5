"""Sandbox images: in which image does a call run, with which program, and what is said when that image is not there?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Attempt, Invocation
from invocations.run_profiles.services import load_profile
from invocations.sandbox.base import IMAGE_MISSING, RunOutcome, RunStatus
from sandbox.image import BROWSER, NODE, image_name
from tests.support.calls import PAIR, assert_problem, kinds_of
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
PROGRAM = {"program": ["/usr/bin/node", "tools.py"], "package": "sample", "image": "node"}
NAME = "sample.tools.echo"


@pytest.fixture
def ready(grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> ScriptedSandbox:
    grant("*")
    return sandbox


@pytest.mark.req("CARD-5")
def test_a_program_runs_with_its_command_in_its_image_and_in_a_box_of_its_own(
    enable: Callable[..., Tool], caller: Caller, ready: ScriptedSandbox
) -> None:
    enable(implementation=PROGRAM)

    answer = caller.invoke(NAME, {})

    assert answer.status_code == 200, answer.json()
    ((profile, call),) = ready.calls
    assert (call.program, call.image, call.module) == (("/usr/bin/node", "tools.py"), image_name(kind=NODE), "")
    assert profile.isolation == "single"
    assert load_profile(Invocation.objects.get()).isolation == "single"


def test_a_function_runs_in_the_usual_image(
    enable: Callable[..., Tool], caller: Caller, ready: ScriptedSandbox
) -> None:
    enable()

    caller.invoke(NAME, {})

    ((_, call),) = ready.calls
    assert (call.program, call.image) == ((), "")


def test_a_tool_with_a_browser_runs_in_the_image_that_has_one(
    enable: Callable[..., Tool], caller: Caller, ready: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ready, "missing", lambda profile, *, by_gate=False: ())
    put_in_force(permit())
    enable(side_effect="Browser", capabilities={"browser": True, "net": [{"host": "example.org"}]})

    answer = caller.invoke(NAME, {})

    assert answer.status_code == 200, answer.json()
    ((profile, call),) = ready.calls
    assert call.image == image_name(kind=BROWSER)
    assert (profile.limits.processes, profile.isolation) == (256, "single")


def test_the_operator_says_which_image_a_name_means(
    enable: Callable[..., Tool], caller: Caller, ready: ScriptedSandbox, settings: Any
) -> None:
    settings.TOOLHUB_SANDBOX_IMAGES = settings.TOOLHUB_SANDBOX_IMAGES | {"ruby": "registry.example.org/ruby-box:3"}
    enable(implementation=PROGRAM | {"image": "ruby"})

    caller.invoke(NAME, {})

    ((_, call),) = ready.calls
    assert call.image == "registry.example.org/ruby-box:3"


@pytest.mark.parametrize("gone", ["from the engine", "from the settings"])
def test_an_image_that_is_not_there_is_a_problem_that_says_what_to_do(
    enable: Callable[..., Tool], caller: Caller, ready: ScriptedSandbox, settings: Any, gone: str
) -> None:
    settings.TOOLHUB_SANDBOX_IMAGES = settings.TOOLHUB_SANDBOX_IMAGES | {"ruby": "ruby-box:3"}
    enable(implementation=PROGRAM | {"image": "ruby"})
    if gone == "from the settings":
        settings.TOOLHUB_SANDBOX_IMAGES = {"python": ""}
    ready.outcome = RunOutcome(RunStatus.START_FAILED, error_code=IMAGE_MISSING, error_message="No image ruby-box:3.")

    body = assert_problem(caller.invoke(NAME, {}), 503, "SANDBOX.IMAGE_MISSING")

    assert ("make sandbox-images" if gone == "from the engine" else "TOOLHUB_SANDBOX_IMAGES") in body["error"]["remedy"]
    row = Invocation.objects.get()
    assert kinds_of(row) == PAIR
    assert Attempt.objects.get(invocation=row).box == ""
