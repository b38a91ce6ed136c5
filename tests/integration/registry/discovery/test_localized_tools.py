"""Localized tools: is a tool found by the words of every language, and read by each person in theirs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.roles import Role
from registry.discovery.search import search_installed
from tests.conftest import make_person
from toolhub.find.search import find_anything

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
CHINESE = {"display_name": "回声工具", "description": "原样返回一段文本。", "examples": ["把这句话重复一遍"]}
GERMAN = {"display_name": "Nachhall", "examples": ["Wiederhole diesen Überweisungstext"]}


@pytest.fixture
def tool(enable: Callable[..., Tool]) -> Tool:
    return enable(examples=["Say it twice"], localizations={"zh-Hans": CHINESE, "de": GERMAN})


@pytest.mark.req("TOOLS-11")
@pytest.mark.parametrize("text", ["回声", "回声工具", "Nachhall", "nachh", "echo"])
def test_a_tool_is_found_by_its_name_in_any_language(text: str, tool: Tool, operator: Person) -> None:
    found = [thing.label for group in find_anything(text, by=operator.by) for thing in group.things]

    assert ECHO in found


@pytest.mark.req("TOOLS-11")
@pytest.mark.parametrize("text", ["返回", "重复", "Überweisungstext", "twice", "回声"])
def test_lists_and_programs_find_it_by_the_words_of_its_texts(
    text: str, tool: Tool, operator: Person, caller: Caller
) -> None:
    rows = operator.client().get("/tools", {"q": text}).context["page"].rows

    assert [row.name for row in rows] == [ECHO]
    assert search_installed(text, by=caller.by) == [ECHO]
    assert ECHO in str(caller.get(f"/tools?q={text}").json()["data"]["tools"])


def test_what_no_language_says_finds_nothing(tool: Tool, operator: Person, caller: Caller) -> None:
    assert search_installed("价格", by=caller.by) == []
    assert [
        thing for group in find_anything("价格", by=operator.by) for thing in group.things if thing.label == ECHO
    ] == []


@pytest.mark.parametrize("page", ["/tools", f"/tools/{ECHO}", f"/tools/{ECHO}/try"])
def test_pages_name_a_tool_in_the_language_of_who_reads_them(page: str, tool: Tool, tenant: Any) -> None:
    client = make_person(tenant, "wei", Role.OWNER).client()

    english = client.get(page).content.decode()
    client.post("/language", {"language": "zh-hans"})
    chinese = client.get(page).content.decode()

    assert ">Echo<" in english.replace("\n", "")
    assert "回声工具" not in english
    assert "回声工具" in chinese


def test_the_tools_page_shows_people_their_text_and_what_agents_read(tool: Tool, operator: Person) -> None:
    client = operator.client()
    client.post("/language", {"language": "zh-hans"})

    page = client.get(f"/tools/{ECHO}").content.decode()

    assert "原样返回一段文本。" in page
    assert "把这句话重复一遍" in page
    assert "The sample tool echo." in page


@pytest.mark.req("TOOLS-12")
def test_programs_get_all_texts_of_a_tool_and_models_its_own_alone(tool: Tool, caller: Caller) -> None:
    whole = caller.get(f"/tools/{ECHO}").json()["data"]

    assert whole["localizations"] == {"zh-Hans": CHINESE, "de": GERMAN}
    assert whole["examples"] == ["Say it twice"]
    assert "回声" not in caller.get("/tools?view=llm").content.decode()
