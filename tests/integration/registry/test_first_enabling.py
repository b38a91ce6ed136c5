"""First enabling: does the first enabling mean the same through every door, where nobody says which version?"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from registry.models import Decision, Tool, ToolState
from registry.versions import services as registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db]
ECHO = "sample.tools.echo"


def over_rest(operator: Person, caller: Caller) -> tuple[bool, str]:
    answer = caller.post(f"/tools/{ECHO}/enable", {"reason": "First."})
    return answer.status_code == 200, answer.content.decode()


def over_console(operator: Person, caller: Caller) -> tuple[bool, str]:
    answer: Any = operator.client().post(f"/tools/{ECHO}/enable", {"reason": "First."})
    return answer.status_code == 302, answer.content.decode()


def over_command(operator: Person, caller: Caller) -> tuple[bool, str]:
    out, err = io.StringIO(), io.StringIO()
    words = (ECHO, "--reason", "First.", "--tenant", "acme", "--as", operator.user.username)
    try:
        call_command("enable_tool", *words, stdout=out, stderr=err)
    except SystemExit as ended:
        return ended.code == 0, err.getvalue()
    return out.getvalue() == f"{ECHO} 1.0.0 is enabled\n", out.getvalue()


DOORS = {"rest": over_rest, "console": over_console, "command": over_command}
pytestmark.append(pytest.mark.parametrize("door", DOORS))


def approve(version: ToolVersion, person: Person) -> None:
    registry.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=person.by)


@pytest.mark.req("TOOLS-7")
def test_it_takes_the_only_approved_version(
    door: str, submit: Callable[..., ToolVersion], operator: Person, caller: Caller
) -> None:
    approve(submit(), operator)
    submit(version="1.1.0")  # waits for its review

    done, answer = DOORS[door](operator, caller)

    assert done, answer
    tool = Tool.objects.select_related("current").get(name=ECHO)
    assert tool.current is not None
    assert (tool.state, tool.current.version) == (ToolState.ENABLED, "1.0.0")


@pytest.mark.req("TOOLS-7")
def test_of_several_it_asks_which(
    door: str, submit: Callable[..., ToolVersion], operator: Person, caller: Caller
) -> None:
    for number in ("1.0.0", "1.1.0"):
        approve(submit(version=number), operator)

    done, answer = DOORS[door](operator, caller)

    assert not done
    assert "Say which version: 1.0.0, 1.1.0." in answer
    assert Tool.objects.get(name=ECHO).state == ToolState.REGISTERED


@pytest.mark.req("TOOLS-7")
def test_without_an_approved_version_it_says_what_to_do(
    door: str, submit: Callable[..., ToolVersion], operator: Person, caller: Caller
) -> None:
    submit()

    done, answer = DOORS[door](operator, caller)

    assert not done
    assert "Have a version reviewed by somebody who did not submit it." in answer
    assert Tool.objects.get(name=ECHO).state == ToolState.REGISTERED
