"""Models in lists: is a model in no list of tools, and yet there for people who grant, stop, limit and look at it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from access.halts.services import throw_halt
from access.models import Reach
from invocations.decide.callable_tools import offer_tools
from registry.discovery.tool_specs import DIALECTS, reading_for
from registry.installations import services as installations
from registry.models import Installation, InstallationState, ToolKind
from registry.problems import ToolIsModel
from registry.tools import lifecycle
from tests.support.calls import assert_problem
from tests.support.connected_models import MODEL, connect_scripted_model
from tests.support.entry_paths import at_the_door, modern_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
# What agents and their models are shown, and lists of tools that are read by people's programs.
OVER_REST = {
    "tools": "/tools",
    "search": "/tools?q=m",
    "view for models": "/tools?view=llm",
    "by group": "/tools?group=model",
    "markdown": "/tools?dialect=markdown",
    "for a model": "/tools?model=openai:gpt-4o",
    **{f"dialect {each}": f"/tools?dialect={each}" for each in DIALECTS},
    "installations": "/installations",
    "catalogue": "/catalogue",
}
PAGES = ["/tools", "/tools?q=script", "/installations", "/installations/shared"]
LIFECYCLE: dict[str, Callable[..., Any]] = {
    "enable": lifecycle.enable_tool,
    "pause": lifecycle.pause_tool,
    "share": lifecycle.share_tool,
    "remove": installations.remove_installation,
    "configure": lambda **given: installations.configure_installation(values={"pin": "1.0.0"}, **given),
}


@pytest.fixture
def both(enable: Callable[..., Tool], grant: Callable[..., Any], operator: Person) -> None:
    """A tool and a model, both granted."""
    enable()
    connect_scripted_model(operator.by)
    grant("sample.*")
    grant("model.*")


def named(text: str) -> list[str]:
    """Which of the two a text names, in whichever dialect."""
    flat = text.replace("_", ".")
    return [each for each in (ECHO, MODEL) if each in flat]


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("path", OVER_REST.values(), ids=list(OVER_REST))
def test_a_model_is_in_no_list_of_tools_over_rest(path: str, caller: Caller) -> None:
    answer = caller.get(path)

    assert answer.status_code == 200, answer.json()
    expected = [] if path in ("/catalogue", "/tools?group=model") else [ECHO]
    assert named(answer.content.decode()) == expected


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
def test_a_model_is_in_no_list_of_tools_over_mcp(caller: Caller) -> None:
    sent = at_the_door(*modern_request(caller, "tools/list"))

    assert named(str(sent.body["result"]["tools"])) == [ECHO]


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("path", PAGES)
def test_a_model_is_on_no_page_of_tools(path: str, operator: Person) -> None:
    page = operator.client().get(path)

    assert page.status_code == 200
    assert MODEL not in page.content.decode()


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
def test_no_dialect_reads_a_call_of_a_model(caller: Caller) -> None:
    assert [MODEL in reading_for(dialect, by=caller.by).names.values() for dialect in DIALECTS] == [False] * len(
        DIALECTS
    )


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
def test_models_are_offered_by_themselves_to_whom_a_grant_names_them(caller: Caller) -> None:
    assert [each.id for each in offer_tools(by=caller.by, kind=ToolKind.MODEL).manifests] == [MODEL]
    assert [each.id for each in offer_tools(by=caller.by).manifests] == [ECHO]


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
def test_reading_a_model_as_a_tool_says_what_it_is(caller: Caller) -> None:
    assert_problem(caller.get(f"/tools/{MODEL}"), 404, "TOOL.IS_A_MODEL")


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("change", LIFECYCLE.values(), ids=list(LIFECYCLE))
def test_a_model_is_not_operated_as_a_tool(change: Callable[..., Any], operator: Person) -> None:
    with pytest.raises(ToolIsModel):
        change(name=MODEL, reason="because", by=operator.by)


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
def test_the_installation_of_a_model_is_paused_and_resumed_as_any(operator: Person) -> None:
    installations.pause_installation(name=MODEL, reason="because", by=operator.by)
    assert Installation.objects.get(name=MODEL).state == InstallationState.PAUSED

    installations.resume_installation(name=MODEL, reason="because", by=operator.by)
    assert Installation.objects.get(name=MODEL).state == InstallationState.ENABLED


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
def test_people_stop_and_limit_a_model_by_its_name(operator: Person) -> None:
    throw_halt(reach=Reach.TOOL, target=MODEL, reason="because", by=operator.by)
    set_budget(scope="tool", tool=MODEL, dimension="calls", amount=1, window_s=60, reason="because", by=operator.by)

    assert MODEL in operator.client().get("/halts").content.decode()
    assert MODEL in operator.client().get("/budgets").content.decode()


@pytest.mark.req("LLM-1")
@pytest.mark.usefixtures("both")
@pytest.mark.parametrize("tab", ["", "/versions", "/manifest", "/activity"])
def test_the_pages_of_a_model_open_for_people(tab: str, operator: Person) -> None:
    page = operator.client().get(f"/tools/{MODEL}{tab}")

    assert page.status_code == 200
    assert MODEL in page.content.decode()
