"""Lists of another: where a server shows one person what is another's, is it held back, and is the next call everybody's own?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from registry.imports.pinned_listings import PinnedListings
from registry.installations import services as installations
from registry.models import Tool
from tests.egress.accounts.conftest import TOOL, ProgramOfPerson, connect
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.egress.remote_servers import RemoteServer
    from tests.support.authorization_server import AuthorizationServer

pytestmark = [pytest.mark.django_db, pytest.mark.attack]

SECRET = "what alice wrote to her doctor"
OF_ALICE = {"name": "read-letters-of-alice", "description": SECRET, "inputSchema": {"type": "object"}}


@pytest.fixture
def reviewed(bring: Callable[..., ToolVersion]) -> list[dict[str, Any]]:
    """What the server listed when its tool was reviewed."""
    listing = PinnedListings().read(bring())
    assert listing is not None
    return list(listing.tools.values())


@pytest.fixture
def programs(
    reviewed: list[dict[str, Any]], accounts: AuthorizationServer, caller: Caller, alice: Person, bob: Person
) -> dict[str, ProgramOfPerson]:
    """Of alice and of bob, both of whom have connected their account."""
    assert reviewed
    found = {person.user.username: ProgramOfPerson(person, caller.agent) for person in (alice, bob)}
    for person in (alice, bob):
        asked = found[person.user.username](TOOL, purpose="x", on_consent="ask")
        connect(person, asked.json()["error"]["details"]["url"], accounts)
    return found


def check_innocent(programs: dict[str, ProgramOfPerson]) -> None:
    """Each person's call gives each their own."""
    for name, program in programs.items():
        answer = program(TOOL)
        assert answer.status_code == 200, answer.json()
        assert answer.json()["data"] == {"notes": [f"note of {name}"], "of": name}


@pytest.mark.req("BRING-3", "SVC-6")
def test_another_persons_tool_in_the_list_is_neither_shown_nor_called(
    programs: dict[str, ProgramOfPerson], reviewed: list[dict[str, Any]], remote: RemoteServer, caller: Caller
) -> None:
    remote.shows["bob"] = [*reviewed, OF_ALICE]

    answer = programs["bob"](TOOL)

    assert answer.json()["data"]["of"] == "bob"
    [warning] = answer.json()["warnings"]
    assert "lists other tools otherwise" in warning
    listed = caller.get("/tools").content.decode()
    assert "letters" not in answer.content.decode() + listed
    assert not Tool.objects.filter(name__contains="letters").exists()
    assert programs["bob"]("mcp.shop.read_letters_of_alice").status_code == 404
    assert not any(each.params.get("name") == OF_ALICE["name"] for each in remote.heard)
    remote.shows.clear()
    check_innocent(programs)


@pytest.mark.req("BRING-3", "SVC-6")
def test_a_tool_that_is_described_to_one_person_by_anothers_words_is_not_called(
    programs: dict[str, ProgramOfPerson], reviewed: list[dict[str, Any]], remote: RemoteServer, operator: Person
) -> None:
    assert programs["alice"](TOOL).json()["data"]["of"] == "alice"
    remote.heard.clear()
    remote.shows["bob"] = [
        each | ({"description": SECRET} if each["name"] == "read-notes" else {}) for each in reviewed
    ]

    answer = programs["bob"](TOOL)

    body = assert_problem(answer, 409, "TOOL.DRIFTED")
    assert body["error"]["details"]["changed"] == ["description"]
    assert SECRET not in answer.content.decode()
    assert remote.asked() == ["tools/list"]
    assert_problem(programs["alice"](TOOL), 409, "TOOL.PAUSED")
    remote.shows.clear()
    installations.resume_installation(name=TOOL, reason="The server was mended.", by=operator.by)
    check_innocent(programs)


@pytest.mark.req("BRING-3", "SVC-6")
def test_a_list_that_holds_nothing_but_another_persons_tools_leaves_the_tool_uncalled(
    programs: dict[str, ProgramOfPerson], remote: RemoteServer, operator: Person
) -> None:
    remote.shows["bob"] = [OF_ALICE]

    answer = programs["bob"](TOOL)

    assert assert_problem(answer, 409, "TOOL.DRIFTED")["error"]["details"] == {"changed": ["name"]}
    assert "letters" not in answer.content.decode()
    assert "tools/call" not in remote.asked()
    remote.shows.clear()
    installations.resume_installation(name=TOOL, reason="The server was mended.", by=operator.by)
    check_innocent(programs)
