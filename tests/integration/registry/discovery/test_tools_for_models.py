"""Tools for models: does an agent get its tools in the dialect of its model, the right ones, and only anew when something has
changed?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.grants import services as grants
from access.halts import services as halts
from access.models import Reach
from kernel.ids import encode, new_id
from registry.discovery.api import NO_VIEW
from registry.discovery.search import search_installed, tokenize_text
from registry.installations import services as installations
from registry.tools import lifecycle
from tests.conftest import make_caller
from tests.support.calls import assert_problem
from unitools.dialects.tool_names import NAMED

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO, PLANS, RAISES = "sample.tools.echo", "sample.tools.plans", "sample.tools.raises"
# Among a hundred thousand ids two have the same eight digits.
SAME_DIGITS = [f"g{each}.tools.{'x' * 39}" for each in (100560, 130012)]
DIALECTS = ["openai", "openai-responses", "anthropic", "gemini", "bedrock", "langchain", "mcp", "xml", "markdown"]
HIDDEN = ["secret-scope", "secret-tag", "consent", "capabilit"]


@pytest.fixture
def two(enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
    enable("plans")
    enable("echo")
    grant()


def tools(caller: Caller, query: str) -> list[str]:
    """The ids of the tools in the answer, in its order."""
    data = caller.get(f"/tools?dialect=openai&{query}").json()["data"]
    return [data["names"][tool["function"]["name"]] for tool in data["tools"]]


@pytest.mark.req("TOOLS-12")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_are_rendered_in_every_dialect_and_nothing_else_of_them_is_shown(
    dialect: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable(
        "echo",
        tags=["secret-tag"],
        side_effect="Read",
        capabilities={"fs": [{"path": "/data", "actions": ["read"]}]},
        scopes=[{"resource": "soul:fs:/data/secret-scope", "action": "read"}],
    )
    grant()

    answer = caller.get(f"/tools?dialect={dialect}")

    assert answer.status_code == 200, answer.json()
    data = answer.json()["data"]
    assert data["dialect"] == dialect
    assert list(data["names"].values()) == [ECHO]
    assert "The sample tool echo." in json.dumps(data["tools"])
    assert [word for word in HIDDEN if word in answer.content.decode().lower()] == []


@pytest.mark.req("TOOLS-12")
def test_a_model_is_told_in_the_dialect_that_serves_it(two: None, caller: Caller) -> None:
    data = caller.get("/tools?model=claude-sonnet-4-5").json()["data"]

    assert data["dialect"] == "anthropic"
    assert [tool["name"] for tool in data["tools"]] == ["sample_tools_echo", "sample_tools_plans"]
    assert data["names"]["sample_tools_echo"] == ECHO


@pytest.mark.req("TOOLS-12")
def test_tools_come_by_name_and_no_more_than_asked_for(two: None, caller: Caller) -> None:
    assert tools(caller, "") == [ECHO, PLANS]

    answer = caller.get("/tools?dialect=openai&limit=1")

    assert list(answer.json()["data"]["names"].values()) == [ECHO]
    assert answer.json()["data"]["matching"] == 2
    assert "1 of 2 tools are shown" in answer.json()["warnings"][0]


@pytest.mark.req("TOOLS-12")
@pytest.mark.parametrize(
    "query", ["limit=0&dialect=xml", "limit=x&dialect=xml", "limit=1001&dialect=xml", "limit=1001"]
)
def test_a_limit_that_cannot_be_is_refused(query: str, caller: Caller) -> None:
    assert_problem(caller.get(f"/tools?{query}"), 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("TOOLS-12")
@pytest.mark.parametrize(
    ("more", "status", "reason"),
    [
        (f"after={encode('ins', new_id())}", 409, "STATE.UNFIT"),
        ("after=ins_0", 422, "SCHEMA.VALIDATION_FAILED"),
        ("colour=red", 422, "SCHEMA.VALIDATION_FAILED"),
    ],
)
def test_what_a_dialect_does_not_go_with_is_said(more: str, status: int, reason: str, caller: Caller) -> None:
    body = assert_problem(caller.get(f"/tools?dialect=openai&{more}"), status, reason)

    assert more.partition("=")[0] in str(body["error"]["details"])


@pytest.mark.req("TOOLS-12")
def test_a_view_beside_a_dialect_changes_nothing_and_that_is_said(caller: Caller) -> None:
    plain, full = (caller.get(f"/tools?dialect=openai{more}").json() for more in ("", "&view=full"))

    assert full["data"] == plain["data"]
    assert [each for each in full["warnings"] if each not in plain["warnings"]] == [NO_VIEW]


@pytest.mark.req("TOOLS-12")
def test_a_dialect_that_nobody_speaks_is_refused_with_those_that_there_are(caller: Caller) -> None:
    body = assert_problem(caller.get("/tools?dialect=klingon"), 422, "SCHEMA.VALIDATION_FAILED")

    [finding] = body["error"]["details"]["findings"]
    assert finding["pointer"] == "/dialect"
    assert "openai, " in finding["message"]


@pytest.mark.req("TOOLS-12", "TOOLS-22")
def test_people_and_other_tenants_get_nothing_of_it(two: None, operator: Person, foreign_caller: Caller) -> None:
    foreign = foreign_caller.get("/tools?dialect=openai").json()

    assert (foreign["data"]["tools"], foreign["data"]["names"]) == ([], {})
    assert "No tool is installed" in foreign["warnings"][0]
    assert operator.client().get("/api/v1/tools?dialect=openai").status_code in (401, 403)


@pytest.mark.req("TOOLS-12", "CONN-3")
def test_tools_whose_ids_are_one_text_have_a_name_each_whichever_of_them_are_there(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any]
) -> None:
    def names() -> dict[str, str]:
        found = [caller.get(f"/tools?dialect={each}").json()["data"]["names"] for each in NAMED]
        assert found == [found[0]] * len(NAMED)
        return {id: name for name, id in found[0].items()}

    grant("*")
    enable("echo", id="sample.echo.x_y")
    alone = names()
    enable("echo", id="sample.echo_x.y")
    enable("echo", id="sample_echo.x.y")
    together = names()

    assert alone == {"sample.echo.x_y": "sample_echo_x_y"}
    assert together.items() > alone.items()
    assert len(set(together.values())) == 3


@pytest.mark.req("TOOLS-12", "CONN-3")
def test_two_tools_of_one_name_are_both_left_out_and_it_is_said(
    enable: Callable[..., Tool], caller: Caller, grant: Callable[..., Any]
) -> None:
    for id in (ECHO, *SAME_DIGITS):
        enable("echo", id=id)
    grant(f"{ECHO} | {SAME_DIGITS[0]}")

    found = [caller.get(f"/tools?dialect={each}").json()["data"] for each in ("openai", "mcp")]

    for data in found:
        assert list(data["names"].values()) == [ECHO]
        assert [each["tool"] for each in data["diagnostics"] if each["severity"] == "skipped"] == [SAME_DIGITS[0]]


class TestTag:
    """ETag and If-None-Match."""

    @pytest.mark.req("TOOLS-12")
    @pytest.mark.parametrize("dialect", DIALECTS)
    def test_what_is_known_already_is_not_sent_again(self, dialect: str, two: None, caller: Caller) -> None:
        first = caller.get(f"/tools?dialect={dialect}")
        again = caller.get(f"/tools?dialect={dialect}", **{"If-None-Match": first.headers["ETag"]})

        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]
        for answer in (first, again):
            assert answer.headers["Cache-Control"] == "private, no-cache"
            assert "Authorization" in answer.headers["Vary"]

    @pytest.mark.req("TOOLS-12")
    @pytest.mark.parametrize(
        "what", ["grant", "revoke", "pause", "pause installation", "halt", "version", "remove", "query", "agent"]
    )
    def test_whatever_changes_the_answer_changes_its_tag(
        self,
        what: str,
        enable: Callable[..., Tool],
        caller: Caller,
        grant: Callable[..., Any],
        operator: Person,
    ) -> None:
        enable("plans")
        enable("echo")
        given = grant(ECHO)
        path, who = "/tools?dialect=openai", caller
        tag = caller.get(path).headers["ETag"]

        match what:
            case "grant":
                grant(PLANS)
            case "revoke":
                grants.revoke_grant(grant_id=given.pk, reason="for a test", by=operator.by)
            case "pause":
                lifecycle.pause_tool(name=ECHO, reason="for a test", by=operator.by)
            case "pause installation":
                installations.pause_installation(name=ECHO, reason="for a test", by=operator.by)
            case "halt":
                halts.throw_halt(reach=Reach.TENANT, reason="for a test", by=operator.by)
            case "version":
                enable("echo", version="1.0.1", description="Says it once more.")
            case "remove":
                installations.remove_installation(name=ECHO, reason="for a test", by=operator.by)
            case "query":
                path += "&q=plans"
            case "agent":
                who = make_caller(operator.by, "other")

        answer = who.get(path, **{"If-None-Match": tag})

        assert answer.status_code == 200
        assert answer.headers["ETag"] != tag

    @pytest.mark.req("TOOLS-12")
    def test_a_rendering_that_is_read_by_its_nonce_is_new_under_another_key(
        self, two: None, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tag = caller.get("/tools?dialect=xml").headers["ETag"]
        monkeypatch.setattr("registry.discovery.api.nonce_key", lambda _: b"another key of the hub, of 32 bytes")

        assert caller.get("/tools?dialect=xml", **{"If-None-Match": tag}).status_code == 200

    @pytest.mark.req("TOOLS-12")
    def test_a_tag_is_no_key(self, two: None, caller: Caller) -> None:
        tag = caller.get("/tools?dialect=openai").headers["ETag"]

        assert Client().get("/api/v1/tools?dialect=openai", headers={"If-None-Match": tag}).status_code == 401


class TestSearch:
    """By words, the best first."""

    @pytest.fixture(autouse=True)
    def _catalogue(self, enable: Callable[..., Tool], grant: Callable[..., Any]) -> None:
        enable("echo", display_name="Currency rates", description="Converts money between two currencies.", tags=["fx"])
        enable("plans", display_name="Plans", description="Makes plans, and says what they cost in money.")
        enable("raises", display_name="汇率查询", description="查询两种货币之间的汇率。 Café.")
        grant()

    @pytest.mark.req("TOOLS-11", "TOOLS-12")
    @pytest.mark.parametrize(
        ("q", "found"),
        [
            ("convert", [ECHO]),
            ("conversion of CURRENCY", [ECHO]),
            ("fx", [ECHO]),
            ("money", [ECHO, PLANS]),
            ("plan money", [PLANS, ECHO]),
            ("money plans", [PLANS, ECHO]),
            ("汇率", [RAISES]),
            ("货币", [RAISES]),
            ("率汇", []),
            ("cafe", [RAISES]),
            ("sample.tools.raises", [RAISES, ECHO, PLANS]),
            ("dinosaur money", [ECHO, PLANS]),
            ("dinosaur", []),
            ("%", []),
            ("_ ' \" * : ( ) AND", []),
            ('"money" OR NEAR(', [ECHO, PLANS]),
            ("text : money", [ECHO, PLANS, RAISES]),
        ],
    )
    def test_tools_are_found_by_their_words(self, q: str, found: list[str], caller: Caller) -> None:
        assert search_installed(q, by=caller.by) == found

    @pytest.mark.req("TOOLS-11", "TOOLS-12")
    def test_the_best_matches_are_kept_by_the_limit(self, caller: Caller) -> None:
        assert tools(caller, "q=plans+money") == [PLANS, ECHO]
        assert tools(caller, "q=plans+money&limit=1") == [PLANS]
        assert tools(caller, "q=money&tag=fx") == [ECHO]

    @pytest.mark.req("TOOLS-11", "TOOLS-12")
    def test_words_that_fit_nothing_are_told_from_nothing_being_there(self, caller: Caller) -> None:
        answer = caller.get("/tools?dialect=openai&q=dinosaur").json()

        assert answer["data"]["tools"] == []
        assert answer["warnings"] == ["None of the 3 installed tools matches the search and the filters."]

    @pytest.mark.req("TOOLS-11", "TOOLS-12")
    def test_a_version_is_found_by_its_own_words_and_not_by_those_of_the_one_before(
        self, enable: Callable[..., Tool], caller: Caller
    ) -> None:
        enable("echo", version="1.1.0", description="Sings.", display_name="Singer", tags=["music"])

        assert search_installed("singing", by=caller.by) == [ECHO]
        assert search_installed("fx", by=caller.by) == []

    @pytest.mark.req("TOOLS-11", "TOOLS-22")
    def test_the_tools_of_another_tenant_are_not_found(self, foreign_caller: Caller) -> None:
        assert search_installed("money", by=foreign_caller.by) == []


@pytest.mark.req("TOOLS-12")
def test_the_words_of_a_text() -> None:
    assert tokenize_text("commerce.tax.getRealtime_quote Überraschung 汇率查询 v2 한국어") == [
        "commerce", "tax", "get", "realtime", "quote", "uberraschung", "汇 率 查 询", "v2", "한국어",
    ]  # fmt: skip
