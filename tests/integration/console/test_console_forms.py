"""Console forms: do the console's forms work for people, with and without a script, and for nobody else?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from access.consents import services as consents
from access.models import Consent, Grant
from registry.models import Tool, ToolVersion
from tests.support.cast_rows import PASSWORD
from tests.support.manifests import manifest
from tests.support.routes import console_routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


def fragment(target: str) -> dict[str, str]:
    return {"HX-Request": "true", "HX-Target": target}


# Signing in and out.


def sign_in(username: str = "olivia", password: str = PASSWORD, **more: str) -> tuple[Client, Any]:
    client = Client()
    return client, client.post("/sign-in", {"username": username, "password": password, **more})


def test_a_person_signs_in_and_out(operator: Person) -> None:
    client, answer = sign_in(next="/invocations?state=failed")

    assert (answer.status_code, answer.headers["Location"]) == (302, "/invocations?state=failed")
    assert client.get("/invocations").status_code == 200
    assert client.get("/sign-out").status_code == 405
    client.post("/sign-out")
    assert client.get("/invocations").status_code == 302


@pytest.mark.parametrize(("username", "password"), [("olivia", "wrong"), ("nobody", PASSWORD), ("", "")])
def test_a_wrong_password_says_no_more_than_that(username: str, password: str, operator: Person) -> None:
    client, answer = sign_in(username, password)

    assert answer.status_code == 422
    assert password not in answer.content.decode() or not password
    assert client.get("/invocations").status_code == 302


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "http:evil"]
)
def test_nobody_is_sent_elsewhere(to: str, operator: Person) -> None:
    assert sign_in(next=to)[1].headers["Location"] == "/start"
    assert Client().post("/theme", {"theme": "dark", "next": to}).headers["Location"] == "/"
    assert Client().post("/language", {"language": "en", "next": to}).headers["Location"] == "/"
    assert to not in Client().get("/sign-in", {"next": to}).content.decode()


# What programs send, which have no session: the protocol of authorization (RFC 6749, 7009, 7591).
NO_FORMS = {
    *(
        "oauth_token",
        "oauth_revoke",
        "oauth_register",
        "oauth_nothing_known",
        "oauth_nothing_known_of_mcp",
        "oauth_nothing_known_of_tenant_mcp",
    ),
    *("oauth_guessed_authorize", "oauth_guessed_token", "oauth_guessed_register"),
}


def test_every_form_is_refused_without_its_token(operator: Person) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator.user)
    names = {"str": "a-b", "slug": "a", "int": "1", "base36": "1", "usr": "usr_1"}

    for route in console_routes():
        path = "/" + route.path
        while "<" in path:
            head, _, rest = path.partition("<")
            takes, _, tail = rest.partition(">")
            kind = takes.partition(":")[0]
            path = head + names.get(kind, f"{kind}_{'0' * 26}") + tail
        answer = client.post(path, {"reason": "x"})
        if route.name in NO_FORMS:
            assert "html" not in answer.headers["Content-Type"], route.name
            continue
        assert answer.status_code == 403, route.name
        assert "html" in answer.headers["Content-Type"] or route.name in ("healthz", "readyz"), route.name


# Language and theme.


def test_a_page_speaks_the_chosen_language_and_wears_the_chosen_theme(operator: Person) -> None:
    client = operator.client()
    english = client.get("/tools").content.decode()
    client.post("/language", {"language": "zh-hans", "next": "/tools"})
    client.post("/theme", {"theme": "dark", "next": "/tools"})

    chinese = client.get("/tools").content.decode()

    assert 'lang="en"' in english
    assert "dark" not in english.split("<body", 1)[0].split("<head", 1)[0]
    assert 'lang="zh-hans"' in chinese.lower()
    assert "dark" in chinese.split("<head", 1)[0]
    client.post("/language", {"language": "xx"})
    client.post("/theme", {"theme": '"><script>'})
    assert "<script>" not in client.get("/tools").content.decode().split("<head", 1)[0]


def test_why_a_service_refuses_is_said_in_the_chosen_language(operator: Person, caller: Caller) -> None:
    chinese = operator.client()
    chinese.post("/language", {"language": "zh-hans", "next": "/agents"})
    form = {"name": caller.agent.name}

    refused, said = (each.post("/agents/new", form) for each in (chinese, operator.client()))

    assert (refused.status_code, said.status_code) == (422, 422)
    assert f"已有名为 {caller.agent.name} 的智能体。" in refused.content.decode()
    assert f"There is an agent with the name {caller.agent.name} already." in said.content.decode()


def test_why_a_page_is_refused_and_what_helps_is_said_in_the_chosen_language(developer: Person) -> None:
    client = developer.client()
    client.post("/language", {"language": "zh-hans", "next": "/agents"})

    page = client.post("/agents/new", {"name": "x"}).content.decode()

    _, _, panel = page.partition('id="problem-panel"')
    assert "请" in panel
    for english in ("Ask an ", "may not", "does not hold"):
        assert english not in panel


# Pages and fragments.


@pytest.mark.parametrize("path", ["/tools", "/grants", "/consents", "/invocations", "/evidence", "/reviews"])
def test_a_list_is_a_page_or_only_its_rows(
    path: str, operator: Person, caller: Caller, enable: Callable[..., Tool]
) -> None:
    enable()
    client = operator.client()

    page, rows = client.get(path), client.get(path, headers=fragment("rows"))

    assert "<html" in page.content.decode()
    assert "<html" not in rows.content.decode()
    assert 'id="rows"' in rows.content.decode()
    for answer in (page, rows):
        assert answer.status_code == 200
        assert "HX-Request" in answer.headers["Vary"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    ["/grants?state=x", "/consents?state=x", "/invocations?state=x", "/evidence?kind=x", "/invocations?from=yesterday",
     "/invocations?to=2026-02-30", "/grants?after=x", "/tools?after=x", "/evidence?after=inv_1"],
)  # fmt: skip
def test_a_filter_that_means_nothing_is_said(path: str, operator: Person) -> None:
    assert operator.client().get(path).status_code == 422


@pytest.mark.parametrize(
    "asked", ["from=0001-01-01", "from=0001-01-01T00:00", "to=9999-12-31", "to=9999-12-31T23:58", "to=1969-12-31"]
)
def test_a_time_at_either_end_of_the_calendar_is_a_filter_too(asked: str, operator: Person) -> None:
    assert operator.client().get(f"/invocations?{asked}").status_code == 200


def test_what_others_typed_is_shown_as_text(operator: Person, caller: Caller, grant: Callable[..., Any]) -> None:
    given = grant()
    Grant.objects.update(reason="<script>alert(1)</script>")

    page = operator.client().get(f"/grants/{given.wire_id}").content.decode()

    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page


# Forms.


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("headers", [{}, fragment("submit-panel")], ids=["page", "fragment"])
def test_a_manifest_with_mistakes_comes_back_with_its_findings_and_what_was_typed(
    headers: dict[str, str], developer: Person
) -> None:
    text = json.dumps(manifest(side_effect="Magic", description="typed with care"))

    answer = developer.client().post("/tools/submit", {"text": text}, headers=headers)

    page = answer.content.decode()
    assert answer.status_code == 422
    assert "/side_effect" in page
    assert "typed with care" in page
    assert not Tool.objects.exists()


def test_a_file_with_mistakes_comes_back_as_text(developer: Person) -> None:
    file = SimpleUploadedFile("m.json", b'{"id": "typed with care"}', content_type="application/json")

    answer = developer.client().post("/tools/submit", {"file": file})

    assert answer.status_code == 422
    assert "typed with care" in answer.content.decode()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": NaN}', "\ud83d"])
def test_text_that_is_no_manifest_is_said_at_the_form(text: str, developer: Person) -> None:
    sent = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

    assert developer.client().post("/tools/submit", {"text": sent}).status_code == 422


def test_a_grant_that_is_not_right_comes_back_with_what_was_typed(operator: Person, caller: Caller) -> None:
    form = {"agent": str(caller.agent.pk), "tools": "not a pattern", "reason": "typed with care", "calls_limit": "7"}

    answer = operator.client().post("/grants/new", form)

    page = answer.content.decode()
    assert answer.status_code == 422
    for typed in ("not a pattern", "typed with care", 'value="7"', "selected"):
        assert typed in page
    assert not Grant.objects.exists()


@pytest.mark.parametrize("action", ["pause", "enable", "deprecate"])
def test_a_step_without_a_reason_comes_back(action: str, operator: Person, enable: Callable[..., Tool]) -> None:
    enable()

    answer = operator.client().post(f"/tools/{ECHO}/{action}", {"sunset_on": "2999-01-31"})

    assert answer.status_code == 422
    assert Tool.objects.get().state == "enabled"
    if action == "deprecate":
        assert "2999-01-31" in answer.content.decode()


def test_a_refusal_without_a_note_comes_back(operator: Person, submit: Callable[..., ToolVersion]) -> None:
    version = submit()

    answer = operator.client().post(f"/reviews/{version.wire_id}/decision", {"decision": "refuse", "note": ""})

    assert answer.status_code == 422
    assert not version.reviews.exists()


def test_what_is_no_longer_possible_is_said_as_a_page(operator: Person, enable: Callable[..., Tool]) -> None:
    enable()
    client = operator.client()
    client.post(f"/tools/{ECHO}/pause", {"reason": "broken"})

    again = client.post(f"/tools/{ECHO}/pause", {"reason": "broken"})
    in_a_fragment = client.post(f"/tools/{ECHO}/pause", {"reason": "broken"}, headers=fragment("tab"))

    assert (again.status_code, in_a_fragment.status_code) == (409, 409)
    assert "<html" in again.content.decode()
    assert "<html" not in in_a_fragment.content.decode()


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("headers", [{}, {"HX-Request": "true"}], ids=["page", "fragment"])
def test_people_bring_a_tool_into_use_with_forms_alone(
    headers: dict[str, str], developer: Person, operator: Person, caller: Caller
) -> None:
    dana, olivia = developer.client(), operator.client()

    def post(client: Client, path: str, **form: str) -> None:
        answer = client.post(path, form, headers=headers)
        assert answer.status_code == 302, answer.content.decode()
        assert client.get(answer.headers["Location"]).status_code == 200

    post(dana, "/tools/submit", text=json.dumps(manifest("write", side_effect="Write", idempotency="keyed")))
    version = ToolVersion.objects.get()
    post(olivia, f"/reviews/{version.wire_id}/decision", decision="approve", note="")
    post(olivia, f"/tools/{version.tool.name}/enable", reason="reviewed", version=version.wire_id)
    post(olivia, "/grants/new", agent=str(caller.agent.pk), tools="sample.*", reason="sells goods")
    caller.post("/consents", {"tool": version.tool.name, "purpose": "place orders"})
    consent = Consent.objects.get()
    post(olivia, f"/consents/{consent.wire_id}/decision", decision="approve", mode="period", reason="fine")

    consent.refresh_from_db()
    assert (Tool.objects.get().state, consent.state, Grant.objects.count()) == ("enabled", "approved", 1)

    post(olivia, f"/consents/{consent.wire_id}/decision", decision="revoke", reason="enough")
    post(olivia, f"/grants/{Grant.objects.get().wire_id}/revoke", reason="enough")
    post(
        olivia, f"/tools/{version.tool.name}/deprecate", reason="old", sunset_on="2999-01-31", confirm=version.tool.name
    )
    consent.refresh_from_db()
    assert (Tool.objects.get().state, consent.state, Grant.objects.get().state) == ("deprecated", "revoked", "revoked")


def test_the_one_who_submitted_is_told_why_the_button_is_off(operator: Person) -> None:
    client = operator.client()
    client.post("/tools/submit", {"text": json.dumps(manifest())})
    version = ToolVersion.objects.get()

    page = client.get(f"/reviews/{version.wire_id}").content.decode()
    forced = client.post(f"/reviews/{version.wire_id}/decision", {"decision": "approve"})

    assert "somebody else must review it" in page
    assert forced.status_code == 403


def test_a_consent_that_ran_out_offers_no_decision(operator: Person, caller: Caller) -> None:
    consent = consents.request_consent(tool=ECHO, versions="^1", purpose="x", validity_s=60, by=caller.by)
    client = operator.client()
    assert "/decision" in client.get(f"/consents/{consent.wire_id}").content.decode()
    Consent.objects.update(expires_at=consent.created_at)

    assert "/decision" not in client.get(f"/consents/{consent.wire_id}").content.decode()
