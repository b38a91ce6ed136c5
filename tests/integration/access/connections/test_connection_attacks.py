"""Attacks on connections: does each way to attack an authorization server, or to harm people by it, end where it should?

Numbered as in the design record of connections.
"""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, unquote

import pytest
from django.conf import settings as configured
from django.core.cache import cache
from django.test import Client
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from access.authentication.bearer import resolve_principal
from access.budgets.rate_limits import RateLimit, make_memory_store
from access.connections import services
from access.models import Connection, ConnectionToken
from access.oauth.clients import clean_name
from access.oauth.redirect_uris import APP_SCHEMES, RedirectRefused, check_redirect_uri
from evidence.models import Fact
from kernel.database.connections import database_time
from kernel.http.outbound import AddressRefused, OutboundFailed, OutboundResponse
from tests.conftest import make_caller
from tests.support.connections import REDIRECT, Program, allow, read_answer, register, signed_request
from tests.support.tokens import ask

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.req("CONN-2")]
HUB = configured.TOOLHUB_PUBLIC_URL
REST = {"resource": HUB}
DOCUMENT = "https://claude.ai/oauth/claude-code-client-metadata"


@pytest.fixture(autouse=True)
def nobody_was_counted() -> None:
    """What a person of another test had fetched, who may have had the same id."""
    make_memory_store.cache_clear()


def later(seconds: int = 60) -> None:
    """As if what happened had happened so long ago."""
    past = database_time() - timedelta(seconds=seconds)
    Connection.objects.filter(redeemed_at__isnull=False).update(redeemed_at=past)
    ConnectionToken.objects.filter(used_at__isnull=False).update(used_at=past)


# 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"code_challenge": None},
        {"code_challenge": "short"},
        {"code_challenge": "x" * 200},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"response_type": "token"},
        {"resource": "https://elsewhere.example/mcp"},
        {"scope": "admin everything"},
        {"response_mode": "fragment"},
        {"prompt": "none"},
    ],
)
def test_1_each_refusal_that_goes_back_says_by_whom_it_is(
    wrong: dict[str, Any], operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    program.connect(operator, caller.agent)

    answer = program.open_page(operator.client(), **wrong)

    said = read_answer(answer)
    assert answer.status_code == 303
    assert answer.headers["Location"].startswith(REDIRECT)
    assert said["error"]
    assert (said["iss"], said["state"]) == (HUB, "state-1")
    assert "" not in said.values()


@pytest.mark.parametrize(
    "wrong", [{"code_challenge": None}, {"response_type": "none"}, {"scope": "admin everything"}, {"prompt": "none"}]
)
def test_1_who_has_not_let_a_program_in_is_not_sent_to_it_by_its_mistake(
    wrong: dict[str, Any], operator: Person
) -> None:
    answer = Program.registered().open_page(operator.client(), **wrong)

    assert answer.status_code == 400
    assert "Location" not in answer.headers


@pytest.mark.parametrize("state", ["{a}", "[1]|^", "%7Ba%7D", "%C3%A4"])
def test_1_a_state_comes_back_as_it_was_given(state: str, operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    page = browser.get(f"{program.address(state=None)}&state={state}")

    answer = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "deny"})

    assert page.status_code == 200
    assert read_answer(answer)["state"] == unquote(state)


def test_1_a_resource_without_a_text_names_none(operator: Person, caller: Caller) -> None:
    Program.registered().connect(operator, caller.agent, asks={"resource": ""})

    assert Connection.objects.get().resource == f"{HUB}/mcp"


def test_1_what_clients_ask_for_everywhere_is_not_refused_when_it_is_asked_for_alone(
    operator: Person, caller: Caller
) -> None:
    tokens = Program.registered().connect(operator, caller.agent, asks={"scope": "offline_access"})

    assert "tools:read" in tokens["scope"].split()


def test_1_a_program_with_several_addresses_says_which_it_means(operator: Person) -> None:
    one = Program.registered()
    several = Program.registered(redirect_uris=[REDIRECT, REDIRECT + "/2"])

    assert one.open_page(operator.client(), redirect_uri=None).status_code == 200
    assert several.open_page(operator.client(), redirect_uri=None).status_code == 400


# 2


def test_2_a_registration_gives_an_id_and_nothing_that_opens_anything() -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()

    assert "registration_access_token" not in made
    assert "registration_client_uri" not in made
    assert not AccessToken.objects.exists()
    assert ask(made["client_secret"]).status_code == 401


@pytest.mark.parametrize("grants", [["client_credentials"], ["authorization_code", "client_credentials"], ["password"]])
def test_2_nobody_registers_for_credentials_of_its_own(grants: list[str]) -> None:
    answer = register(grant_types=grants)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


def test_2_a_registered_client_gets_no_token_for_itself() -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()

    answer = Client().post(
        "/oauth/token",
        {
            "grant_type": "client_credentials",
            "client_id": made["client_id"],
            "client_secret": made["client_secret"],
        },
    )

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


def test_2_a_row_of_the_librarys_tables_opens_nothing(operator: Person) -> None:
    application = Application.objects.get(client_id=register().json()["client_id"])
    text = "hubo_" + "A" * 49
    AccessToken.objects.create(
        user=operator.user,
        application=application,
        token=text,
        expires=database_time() + timedelta(days=1),
        scope="tools:read",
    )

    assert ask(text).status_code == 401


# 3


def test_3_a_foreign_resource_is_refused_when_it_is_asked_for_and_at_each_token(
    operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]

    foreign = program.exchange(code, resource="https://elsewhere.example/mcp")
    wider = program.exchange(code, resource=HUB)
    tokens = program.exchange(
        code, resource=f"{HUB}/mcp".upper().replace("HTTP:", "http:").replace("/MCP", "/mcp")
    ).json()
    refreshed = program.refresh(tokens["refresh_token"], resource="https://elsewhere.example/mcp")

    assert foreign.json()["error"] == wider.json()["error"] == "invalid_target"
    assert refreshed.json()["error"] == "invalid_target"
    assert program.refresh(tokens["refresh_token"]).status_code == 200  # who leaves it out means the same


def test_3_who_names_no_resource_gets_no_token_for_everything(operator: Person, caller: Caller) -> None:
    tokens = Program.registered().connect(operator, caller.agent)

    assert Connection.objects.get().resource == f"{HUB}/mcp"
    assert ask(tokens["access_token"]).status_code == 401


# 4


@pytest.mark.parametrize(
    "uri",
    [
        "http://evil.test/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "blob:https://x/1",
        "https://x.example/cb#fragment",
        "https://x.example/cb#",
        "https://user@x.example/cb",
        "https://*.example/cb",
        "https:/x.example/cb",
        "ftp://x.example/cb",
        "about:blank",
        "http://localhost.evil.test/cb",
        "http://127.0.0.1.evil.test/cb",
        "https://x.example/a b",
        "vbscript:x",
        "intent://x#Intent;end",
        "https://ｘ.example/cb",
        "https://" + "x" * 254 + "/cb",
        *("https://a;frame-ancestors/cb", "https://a;sandbox/cb", "https://a'/cb", "https://a,b/cb", "https://%2e/cb"),
        *("https://$/cb", "http://[::1]evil/cb", "https://a..b/cb", "com.example.app:/cb", f"com.{'a' * 300}:/cb"),
    ],
)
def test_4_an_answer_is_sent_nowhere_else(uri: str) -> None:
    answer = register(redirect_uris=[REDIRECT, uri])

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_redirect_uri")
    with pytest.raises(RedirectRefused):
        check_redirect_uri(uri)


def test_4_what_was_registered_past_the_rule_is_not_answered_either(operator: Person) -> None:
    program = Program.registered()
    Application.objects.update(redirect_uris="http://evil.test/cb")

    answer = program.open_page(operator.client(), redirect_uri="http://evil.test/cb")

    assert answer.status_code == 400
    assert "Location" not in answer.headers


@pytest.mark.parametrize(
    "uri",
    [
        *("https://x.example/cb", "https://x.example:8443/cb?a=b", "https://[2606:2800:220:1::1]/cb"),
        *("http://127.0.0.1/cb", "http://[::1]:1/cb", "http://localhost/cb", "cursor://a.b/cb", "vscode://c"),
    ],
)
def test_4_what_registers_is_good_in_a_document_too(
    uri: str, monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve(monkeypatch, claude_document(redirect_uris=[uri]))

    assert register(redirect_uris=[uri]).status_code == 201
    assert Program(DOCUMENT, uri).open_page(operator.client()).status_code == 200


def test_4_the_librarys_schemes_are_ours() -> None:
    named: Any = configured.OAUTH2_PROVIDER["ALLOWED_REDIRECT_URI_SCHEMES"]

    assert set(named) == {"https", "http", *APP_SCHEMES}


@pytest.mark.parametrize(
    "uri", ["https://client.example/other", "https://client.example/callback/../x", REDIRECT + "?x=1"]
)
def test_4_an_address_that_was_not_registered_is_not_answered(uri: str, operator: Person) -> None:
    answer = Program.registered().open_page(operator.client(), redirect_uri=uri)

    assert answer.status_code == 400
    assert "Location" not in answer.headers


def test_4_an_unknown_client_sends_nobody_anywhere(operator: Person) -> None:
    answer = Program("nobody").open_page(operator.client())

    assert answer.status_code == 400
    assert "Location" not in answer.headers


def test_4_more_than_ten_addresses_are_too_many() -> None:
    assert register(redirect_uris=[f"https://x.example/{n}" for n in range(11)]).status_code == 400


# 5


def test_5_a_code_that_is_shown_again_ends_what_it_opened(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent, asks=REST))["code"]
    tokens = program.exchange(code).json()
    later()

    again = program.exchange(code)

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert ask(tokens["access_token"]).status_code == 401
    assert program.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert Fact.objects.get(kind="connection.reuse_detected").content["data"]["what"] == "code"
    assert Connection.objects.get().end_reason == "reuse"


def test_5_a_code_is_worth_nothing_without_its_verifier_its_client_and_its_address(
    operator: Person, caller: Caller
) -> None:
    program, other = Program.registered(), Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]

    for answer in (
        program.exchange(code, code_verifier="w" * 64),
        program.exchange(code, code_verifier=""),
        program.exchange(code, redirect_uri="https://client.example/other"),
        other.exchange(code),
    ):
        assert answer.status_code in (400, 401), answer.content
        assert "access_token" not in answer.json()
    assert program.exchange(code).status_code == 200


def test_5_a_code_is_good_for_a_minute(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    code = read_answer(allow(operator.client(), program, caller.agent))["code"]
    Grant.objects.update(expires=database_time() - timedelta(seconds=1))

    assert program.exchange(code).json()["error"] == "invalid_grant"


# 6


def test_6_a_refresh_token_that_is_shown_again_ends_the_connection(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)
    second = program.refresh(first["refresh_token"]).json()
    later()

    again = program.refresh(first["refresh_token"])

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert ask(second["access_token"]).status_code == 401
    assert program.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"
    assert Fact.objects.get(kind="connection.reuse_detected").content["data"]["what"] == "refresh_token"


def test_6_two_windows_of_one_program_that_refresh_at_once_end_nothing(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)
    second = program.refresh(first["refresh_token"]).json()

    loser = program.refresh(first["refresh_token"])

    assert loser.json()["error"] == "invalid_grant"
    assert ask(second["access_token"]).status_code == 200
    assert not Fact.objects.filter(kind="connection.reuse_detected").exists()


def test_6_from_elsewhere_it_is_no_second_window(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    first = program.connect(operator, caller.agent, asks=REST)
    second = program.refresh(first["refresh_token"]).json()

    Client().post(
        "/oauth/token",
        {"grant_type": "refresh_token", "refresh_token": first["refresh_token"], "client_id": program.client_id},
        REMOTE_ADDR="203.0.113.9",
    )

    assert ask(second["access_token"]).status_code == 401


def test_6_a_refresh_token_is_its_clients_only(operator: Person, caller: Caller) -> None:
    program, other = Program.registered(), Program.registered()
    tokens = program.connect(operator, caller.agent)

    assert other.refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
    gone = Client().post("/oauth/revoke", {"client_id": other.client_id, "token": tokens["refresh_token"]})
    assert gone.status_code == 200  # which says nothing
    assert program.refresh(tokens["refresh_token"]).status_code == 200


# 7


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\u202egnp.exe\u202c Claude", "gnp.exe Claude"),
        ("Claude\n\n\nVerified by toolhub", "Claude Verified by toolhub"),
        ("a" * 200, "a" * 60),
        ("\u200b\u2066x\u2069", "x"),
        ("Claude”. Checked by your company. “", "Claude. Checked by your company."),
        ('«A» "B" 「C」', "A B C"),
        ("\u3164\uffa0\u115f\u2800", ""),
        ("Anna's", "Anna's"),
        ("  many   blanks ", "many blanks"),
        (None, ""),
        (["x"], ""),
    ],
)
def test_7_a_name_is_shown_as_what_it_is(said: Any, shown: str) -> None:
    assert clean_name(said) == shown


def test_7_the_page_says_first_that_nobody_vouches(operator: Person, caller: Caller) -> None:
    page = Program.registered(client_name="<b>Claude</b>").open_page(operator.client()).content.decode()

    assert "An unverified program asks to act as an agent" in page
    assert "<b>Claude</b>" not in page
    assert "client.example" in page


# 8


def test_8_a_form_cannot_say_more_than_was_asked_for(operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    asked = {"scope": "tools:read"}

    wider = allow(browser, program, caller.agent, asks=asked, scopes=["tools:read", "invocations:create"])
    tools = allow(browser, program, caller.agent, asks=asked, reach="these", tools=["somebody.elses.tool"])
    longer = allow(browser, program, caller.agent, asks=asked, days="9999")
    foreign = allow(
        browser, program, caller.agent, asks=asked, resource=HUB, redirect_uri="https://evil.test/", client_id="x"
    )

    assert (wider.status_code, tools.status_code, longer.status_code) == (422, 422, 422)
    assert foreign.headers["Location"].startswith(REDIRECT)
    opened = Connection.objects.get()
    assert (opened.scopes, opened.resource) == (["tools:read"], f"{HUB}/mcp")


def test_8_a_request_is_of_one_person_and_one_session(
    operator: Person, second_operator: Person, caller: Caller
) -> None:
    program = Program.registered()
    signed = signed_request(program.open_page(operator.client()))
    form = {"request": signed, "agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1"}

    for browser in (second_operator.client(), operator.client()):  # another person; the same, signed in anew
        assert browser.post("/oauth/authorize", form | {"decision": "allow"}).status_code == 400
    assert operator.client().post("/oauth/authorize", form | {"request": signed + "x"}).status_code == 400
    assert not Connection.objects.exists()


def test_8_another_page_cannot_send_the_form(operator: Person, caller: Caller) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(operator.user)
    page = Program.registered().open_page(browser)

    answer = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "allow"})

    assert answer.status_code == 403


def test_8_a_program_that_says_something_else_by_now_is_not_let_in(operator: Person, caller: Caller) -> None:
    program, browser = Program.registered(), operator.client()
    signed = signed_request(program.open_page(browser))
    Application.objects.update(name="Another")

    form = {"request": signed, "agent": caller.agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "1"}
    answer = browser.post("/oauth/authorize", form | {"decision": "allow"})

    assert answer.status_code == 400
    assert not Connection.objects.exists()


# 9


def test_9_an_address_registers_ten_programs_an_hour() -> None:
    body, place = json.dumps({"redirect_uris": [REDIRECT]}), "198.51.100.77"
    found = [
        Client().post("/oauth/register", body, content_type="application/json", REMOTE_ADDR=place) for _ in range(12)
    ]

    assert [each.status_code for each in found][:10] == [201] * 10
    assert found[-1].status_code == 429
    assert int(found[-1].headers["Retry-After"]) > 0


def test_9_what_nobody_lets_in_goes_after_a_day(operator: Person, caller: Caller) -> None:
    used, unused = Program.registered(), Program.registered()
    used.connect(operator, caller.agent)
    Application.objects.update(created=database_time() - timedelta(hours=25))

    Program.registered()

    kept = set(Application.objects.values_list("client_id", flat=True))
    assert used.client_id in kept
    assert unused.client_id not in kept


def test_9_where_too_many_have_registered_the_oldest_goes_if_no_person_reads_it_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("access.oauth.clients.MAX_WITHOUT_CONNECTION", 2)
    first, second = Program.registered(), Program.registered()

    assert register().status_code == 503
    Application.objects.update(created=database_time() - timedelta(hours=2))
    Application.objects.filter(client_id=second.client_id).update(created=database_time() - timedelta(hours=3))
    assert register().status_code == 201

    kept = set(Application.objects.values_list("client_id", flat=True))
    assert first.client_id in kept
    assert second.client_id not in kept
    assert len(kept) == 2


# 10


def test_10_a_key_gets_what_it_carries_of_what_is_asked_for(operator: Person) -> None:
    reader = make_caller(operator.by, "reader", scopes=("tools:read",))
    form = {"grant_type": "client_credentials", "client_id": reader.agent.wire_id, "client_secret": reader.key}

    narrowed = Client().post("/oauth/token", form | {"scope": "tools:read invocations:create"})
    nothing = Client().post("/oauth/token", form | {"scope": "invocations:create"})
    foreign = Client().post("/oauth/token", form | {"resource": "https://elsewhere.example"})

    assert narrowed.json()["scope"] == "tools:read"
    assert nothing.json()["error"] == "invalid_scope"
    assert foreign.json()["error"] == "invalid_target"


def test_10_a_token_for_a_key_is_for_the_resource_that_was_asked_for(caller: Caller) -> None:
    form = {"grant_type": "client_credentials", "client_id": caller.agent.wire_id, "client_secret": caller.key}

    part = Client().post("/oauth/token", form | {"resource": f"{HUB}/mcp"}).json()["access_token"]
    whole = Client().post("/oauth/token", form).json()["access_token"]

    assert ask(part).status_code == 401
    assert ask(whole).status_code == 200
    for each in (part, whole):
        assert resolve_principal(each, address="", resource=f"{HUB}/mcp").agent_id == caller.agent.pk


# 11


def test_11_a_refresh_cannot_widen_what_was_allowed(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    tokens = program.connect(operator, caller.agent, asks={"scope": "tools:read"})

    wider = program.refresh(tokens["refresh_token"], scope="tools:read agents:manage").json()

    assert wider["scope"] == "tools:read"


# Documents of clients (CIMD).


def serve(monkeypatch: pytest.MonkeyPatch, document: Any, *, raises: Exception | None = None) -> list[str]:
    asked: list[str] = []
    cache.clear()  # of what could not be read a moment ago

    def answer(url: str, **_: Any) -> OutboundResponse:
        asked.append(url)
        if raises is not None:
            raise raises
        return OutboundResponse(200, json.dumps(document).encode(), {"content-type": "application/json"})

    monkeypatch.setattr("access.oauth.client_documents.send_request", answer)
    return asked


def claude_document(**more: Any) -> dict[str, Any]:
    usual = {
        "client_id": DOCUMENT,
        "client_name": "Claude Code",
        "redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return usual | more


def test_a_document_makes_its_host_known_and_any_port_of_this_computer_good(
    monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    serve(monkeypatch, claude_document())
    program = Program(DOCUMENT, "http://localhost:53219/callback")

    page = program.open_page(operator.client()).content.decode()
    tokens = program.connect(operator, caller.agent)

    assert "<bdi>claude.ai</bdi> asks to act as an agent" in page
    assert "a program on this computer" in page
    assert tokens["access_token"]
    assert Connection.objects.get().client_host == "claude.ai"


def test_the_page_warns_where_another_host_than_the_programs_gets_the_answer(
    monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    there = ["https://claude.ai/callback", "https://files.test/callback"]
    serve(monkeypatch, claude_document(redirect_uris=there))

    own, other = (Program(DOCUMENT, each).open_page(operator.client()).content.decode() for each in there)

    assert "which is not claude.ai" not in own
    assert "<bdi>files.test</bdi></strong>, which is not claude.ai." in other
    for page in (own, other):  # the whole id, before what it says of itself
        assert 0 < page.index(f"<bdi>{DOCUMENT}</bdi>") < page.index("Claude Code")


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_id": "https://claude.ai/other"},
        {"client_secret": "x"},
        {"redirect_uris": ["http://evil.test/cb"]},
        {"redirect_uris": []},
        {"grant_types": ["client_credentials"]},
        {"token_endpoint_auth_method": "client_secret_post"},
    ],
)
def test_a_document_that_is_not_as_it_must_be_makes_nobody_known(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve(monkeypatch, claude_document(**wrong))

    answer = Program(f"{DOCUMENT}", "http://localhost/callback").open_page(operator.client())

    assert answer.status_code == 400
    assert not Application.objects.exists()


@pytest.mark.parametrize("problem", [AddressRefused("private"), OutboundFailed("3 MB"), OutboundFailed("answered 302")])
def test_a_document_that_cannot_be_had_makes_nobody_known(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    serve(monkeypatch, {}, raises=problem)

    answer = Program("https://elsewhere.example/client", "http://localhost/callback").open_page(operator.client())

    assert answer.status_code == 400


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "127.0.0.1", "10.0.0.1", "::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]
)
@pytest.mark.parametrize("networks", [[], ["0.0.0.0/0", "::/0"]])
def test_a_document_is_not_fetched_from_a_private_address(
    networks: list[str], address: str, monkeypatch: pytest.MonkeyPatch, operator: Person, settings: Any
) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = networks  # that the operator allows for identity providers and webhooks
    cache.clear()
    connected: list[Any] = []
    monkeypatch.setattr("kernel.http.outbound.socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", (address, 443))])
    monkeypatch.setattr("kernel.http.outbound.socket.create_connection", lambda *a, **k: connected.append(a))

    answer = Program(f"https://h{abs(hash(address))}.example/client", REDIRECT).open_page(operator.client())

    assert answer.status_code == 400
    assert connected == []


@pytest.mark.parametrize(
    "client_id",
    [
        *("http://claude.ai/x", "https://claude.ai", "https://claude.ai/a/../b", "https://u@claude.ai/x"),
        "https://cl\u0430ude.ai/x",  # a Cyrillic letter
        "https://claude.ai\u202e/x",  # turns the line around
        "https://claude.ai/\u200bx",
        "https://claude.ai\uff0fx/y",
    ],
)
def test_an_id_that_can_be_read_in_two_ways_is_not_fetched(
    client_id: str, monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    asked = serve(monkeypatch, claude_document(client_id=client_id))

    assert Program(client_id, "http://localhost/callback").open_page(operator.client()).status_code == 400
    assert asked == []


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/oauth/token", {"grant_type": "authorization_code", "code": "x", "code_verifier": "v" * 64}),
        ("/oauth/token", {"grant_type": "refresh_token", "refresh_token": "x"}),
        ("/oauth/revoke", {"token": "x"}),
    ],
)
@pytest.mark.parametrize("basic", [False, True])
def test_nobody_who_is_not_signed_in_makes_the_hub_fetch_anything(
    basic: bool, path: str, form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = serve(monkeypatch, claude_document())
    headers: Any = {}
    if basic:
        named = base64.b64encode(f"{quote_plus(DOCUMENT)}:".encode()).decode()
        headers["HTTP_AUTHORIZATION"] = f"Basic {named}"
    else:
        form = form | {"client_id": DOCUMENT}

    Program(DOCUMENT, "http://localhost/callback").open_page(Client())
    answer = Client().post(path, form, **headers)

    assert answer.status_code in (400, 401)
    assert asked == []
    assert not Application.objects.exists()


def test_a_document_that_is_old_is_read_anew_for_a_person_and_for_no_program(
    monkeypatch: pytest.MonkeyPatch, operator: Person, caller: Caller
) -> None:
    asked = serve(monkeypatch, claude_document())
    program = Program(DOCUMENT, "http://localhost/callback")
    tokens = program.connect(operator, caller.agent)
    Application.objects.update(cimd_expires_at=database_time() - timedelta(seconds=1))

    assert program.refresh(tokens["refresh_token"]).status_code == 200
    assert len(asked) == 1
    program.open_page(operator.client())
    assert len(asked) == 2


def test_a_person_makes_the_hub_fetch_so_many_documents_and_no_more(
    monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    monkeypatch.setattr("access.budgets.rate_limits.DOCUMENT_FETCHES", RateLimit(1, 3600, 1))
    asked = serve(monkeypatch, {})
    browser = operator.client()

    found = [Program(f"https://elsewhere.example/{n}", REDIRECT).open_page(browser).status_code for n in range(3)]

    assert found == [400, 429, 429]
    assert len(asked) == 1


def test_no_connection_of_the_database_is_held_while_a_document_is_fetched(
    monkeypatch: pytest.MonkeyPatch, operator: Person
) -> None:
    asked = serve(monkeypatch, claude_document())
    asked_when_released: list[int] = []
    monkeypatch.setattr(
        "access.oauth.client_documents.release_connection", lambda: asked_when_released.append(len(asked))
    )

    Program(DOCUMENT, "http://localhost/callback").open_page(operator.client())

    assert asked_when_released == [0]
    assert len(asked) == 1


def test_documents_of_programs_that_nobody_lets_in_go_after_a_day(
    monkeypatch: pytest.MonkeyPatch, operator: Person, stranger: Person, foreign_caller: Caller
) -> None:
    used, unused, fresh = (f"https://{each}.example/client" for each in ("used", "unused", "fresh"))
    for each in (used, unused):
        serve(monkeypatch, claude_document(client_id=each))
        Program(each, "http://localhost/callback").open_page(operator.client())
    serve(monkeypatch, claude_document(client_id=used))
    Program(used, "http://localhost/callback").connect(stranger, foreign_caller.agent)  # in another tenant
    Application.objects.update(updated=database_time() - timedelta(hours=25))

    serve(monkeypatch, claude_document(client_id=fresh))
    Program(fresh, "http://localhost/callback").open_page(operator.client())

    assert set(Application.objects.values_list("client_id", flat=True)) == {used, fresh}


# Two tenants.


def test_a_person_lets_nobody_act_as_an_agent_of_another_tenant(
    operator: Person, foreign_caller: Caller, caller: Caller
) -> None:
    answer = allow(operator.client(), Program.registered(), foreign_caller.agent)

    assert answer.status_code == 422  # the page once more, without a choice of that name
    assert not Connection.objects.exists()


def test_a_token_of_one_tenant_shows_nothing_of_another(
    operator: Person, stranger: Person, caller: Caller, foreign_caller: Caller
) -> None:
    program = Program.registered()
    program.connect(operator, caller.agent, asks=REST)
    program.connect(stranger, foreign_caller.agent, asks=REST)

    mine = operator.client().get("/connections").content.decode()

    other = Connection.objects.get(agent=foreign_caller.agent)
    assert other.wire_id not in mine
    assert mine.count("Test client") == 1
    assert operator.client().post(f"/connections/{other.wire_id}/end").status_code in (403, 404)
    assert services.may_end(other, by=operator.by) is False


def test_the_librarys_tables_of_tokens_stay_empty(operator: Person, caller: Caller) -> None:
    program = Program.registered()
    program.refresh(program.connect(operator, caller.agent)["refresh_token"])

    assert not AccessToken.objects.exists()
    assert not RefreshToken.objects.exists()
    assert not Grant.objects.exists()
