"""Versions at once: which version does an installation get whose pin is changed while its publisher changes the versions?

One side holds the installation's lock while the other, on a connection of its own, waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from registry.installations import services as installations
from registry.models import Decision, Installation
from registry.tools import lifecycle
from registry.versions import services
from tests.support.concurrency import together

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool, ToolVersion
    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"


@pytest.fixture
def approved(submit: Callable[..., ToolVersion], operator: Person) -> Callable[[str], ToolVersion]:
    def make(version: str) -> ToolVersion:
        made = submit(version=version)
        confirmed = [change["id"] for change in made.changes]
        services.review_version(
            version_id=made.pk, decision=Decision.APPROVE, note="", acknowledged=confirmed, by=operator.by
        )
        return made

    return make


@pytest.fixture
def tool(enable: Callable[..., Tool]) -> Tool:
    return enable()


def pin(to: str, operator: Person) -> Callable[[], Any]:
    return lambda: installations.configure_installation(
        name=ECHO, values={"pin": to}, reason="for a test", by=operator.by
    )


def got() -> tuple[str, str]:
    row = Installation.objects.select_related("version").get(name=ECHO)
    assert row.version is not None
    return row.pin, row.version.version


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("pin_first", [True, False])
def test_whoever_lets_go_of_a_pin_while_a_version_is_enabled_follows_it(
    pin_first: bool, tool: Tool, approved: Callable[[str], ToolVersion], operator: Person
) -> None:
    pin("1.0.0", operator)()
    newer = approved("1.0.1")

    def enable() -> None:
        lifecycle.enable_tool(name=ECHO, version_id=newer.pk, reason="for a test", by=operator.by)

    steps = (pin("", operator), enable) if pin_first else (enable, pin("", operator))
    together(*steps)

    assert got() == ("", "1.0.1")


@pytest.mark.req("TOOLS-9")
@pytest.mark.parametrize("pin_first", [True, False])
def test_whoever_pins_while_a_version_is_approved_gets_it_when_it_is_within(
    pin_first: bool, tool: Tool, submit: Callable[..., ToolVersion], operator: Person
) -> None:
    newer = submit(version="1.0.1")
    confirmed = [change["id"] for change in newer.changes]

    def approve() -> None:
        services.review_version(
            version_id=newer.pk, decision=Decision.APPROVE, note="", acknowledged=confirmed, by=operator.by
        )

    steps = (pin("^1", operator), approve) if pin_first else (approve, pin("^1", operator))
    together(*steps)

    assert got() == ("^1", "1.0.1")


@pytest.mark.req("TOOLS-9")
def test_whoever_pins_to_a_version_while_it_is_yanked_leaves_it(
    tool: Tool, approved: Callable[[str], ToolVersion], operator: Person
) -> None:
    newer = approved("1.0.1")

    def yank() -> None:
        lifecycle.yank_version(version_id=newer.pk, reason="for a test", by=operator.by)

    together(pin("^1", operator), yank)

    assert got() == ("^1", "1.0.0")
