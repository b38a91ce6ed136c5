"""Kind checks: is a provider whose address does not speak as its kind does found when it is connected, without money and without
a key?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from access.roles import Role
from registry.model_providers.kind_checks import check_kind
from registry.models import ModelProvider
from registry.secrets.services import set_secret
from tests.conftest import make_caller, make_person
from tests.support.model_servers import Reply, json_reply, model_server

if TYPE_CHECKING:
    from pathlib import Path

    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
OPENAI_LIST = json_reply({"object": "list", "data": [{"id": "gpt-5", "object": "model"}]})
OPENAI_REFUSAL = json_reply({"error": {"message": "no key", "type": "invalid_request_error", "code": None}}, 401)
SERVER_REFUSAL = json_reply({"detail": "Unauthorized"}, 401)
ANTHROPIC_LIST = json_reply({"data": [{"id": "claude", "type": "model"}], "has_more": False, "first_id": "claude"})
ANTHROPIC_REFUSAL = json_reply({"type": "error", "error": {"type": "authentication_error", "message": "no key"}}, 401)
GEMINI_LIST = json_reply({"models": [{"name": "models/gemini"}]})
GEMINI_REFUSAL = json_reply({"error": {"code": 403, "message": "no key", "status": "PERMISSION_DENIED"}}, 403)
PAGE = Reply([b"<!doctype html><title>Welcome</title>"], 200, "text/html")
NOWHERE = json_reply({"detail": "Not Found"}, 404)
OPENAI, ANTHROPIC, GEMINI = ["openai", "openai_compatible", "openai_responses"], ["anthropic"], ["gemini"]
# What an address answers, and the kinds that it speaks as.
SPOKEN: list[tuple[Reply, list[str]]] = [
    (OPENAI_LIST, OPENAI),
    (OPENAI_REFUSAL, OPENAI),
    (SERVER_REFUSAL, OPENAI),
    (ANTHROPIC_LIST, ANTHROPIC),
    (ANTHROPIC_REFUSAL, ANTHROPIC),
    (GEMINI_LIST, GEMINI),
    (GEMINI_REFUSAL, GEMINI),
    (PAGE, []),
    (NOWHERE, []),
    (Reply([b"[" * 100_000]), []),
    (json_reply([1]), []),
]


@pytest.fixture(autouse=True)
def _loopback(settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def manager(operator: Person) -> Caller:
    return make_caller(operator.by, "manager", scopes=("models:manage", "configuration:apply"))


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize("place", range(len(SPOKEN)))
@pytest.mark.parametrize("kind", [*OPENAI, *ANTHROPIC, *GEMINI])
def test_an_address_is_warned_about_by_every_kind_that_it_does_not_speak_as(kind: str, place: int) -> None:
    reply, spoken = SPOKEN[place]

    with model_server(reply) as server:
        said = check_kind(kind, f"{server.url}/v1")

    assert (said == "") is (kind in spoken), said
    [heard] = server.heard
    assert (heard.method, heard.path, heard.body) == ("GET", "/v1/models", b"")
    assert {"authorization", "x-api-key", "x-goog-api-key"}.isdisjoint(heard.headers)


@pytest.mark.req("LLM-10")
def test_a_provider_is_connected_and_the_answer_says_what_is_odd(manager: Caller, operator: Person) -> None:
    set_secret(name="one.key", value="sk-quokka", by=operator.by)
    terms = {"kind": "openai", "secret": "one.key", "reason": "for a test"}

    with model_server(PAGE) as server:
        odd = manager.post("/model-providers", {"name": "odd", "address": server.url, **terms})
        again = manager.patch("/model-providers/odd", {"settings": {"retries": 1}, "reason": "for a test"})
    with model_server(OPENAI_REFUSAL) as other:
        moved = manager.patch("/model-providers/odd", {"address": f"{other.url}/v1", "reason": "for a test"})

    assert (odd.status_code, again.status_code, moved.status_code) == (201, 200, 200), odd.content
    assert odd.json()["warnings"] == [
        f"{server.url} does not answer as providers of the kind openai do. Look at the address (many end with /v1), and at the kind."
    ]
    assert (again.json()["warnings"], moved.json()["warnings"]) == ([], [])
    assert len(server.heard) == 1
    assert "sk-quokka" not in repr([*server.heard, *other.heard])


@pytest.mark.req("LLM-10")
def test_what_cannot_be_checked_is_said(manager: Caller) -> None:
    def warnings(name: str, **terms: Any) -> list[str]:
        answer = manager.post("/model-providers", {"name": name, "reason": "for a test", **terms})
        assert answer.status_code == 201, answer.content
        found: list[str] = answer.json()["warnings"]
        return found

    with model_server(PAGE) as gone:
        pass
    [away] = warnings("away", kind="openai", address=f"{gone.url}/v1")
    [other] = warnings("ranks", kind="retrieval", address="https://rank.example/v1")
    [unknown] = warnings("unknown", kind="opanai")

    assert away.startswith(f"Whether {gone.url}/v1 speaks as providers of the kind openai do could not be checked: ")
    assert other == "Whether https://rank.example/v1 speaks as providers of the kind retrieval do was not checked."
    assert unknown == "This hub has no providers of the kind opanai, so models of this one cannot be asked."
    assert warnings("usual", kind="openai") == []
    assert warnings("here", kind="local") == []


@pytest.mark.req("LLM-10")
def test_an_address_in_a_private_network_is_not_asked(settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = []

    with model_server(PAGE) as server:
        said = check_kind("openai", server.url.replace("http://", "https://"))

    assert "private address" in said
    assert server.heard == []


@pytest.mark.req("LLM-10")
def test_a_file_that_connects_one_says_it_by_every_door(
    manager: Caller, tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(name: str, url: str) -> dict[str, Any]:
        document = {"format": 1, "model_providers": [{"name": name, "kind": "anthropic", "address": f"{url}/v1"}]}
        digest = manager.post("/configuration/plan", {"document": document}).json()["data"]["digest"]
        return {"document": document, "digest": digest}

    file = tmp_path / "hub.json"
    with model_server(OPENAI_LIST) as server:
        applied = manager.post("/configuration/apply", write("one", server.url))
        file.write_text(json.dumps(write("two", server.url)["document"]))
        call_command("apply", file=str(file), tenant="acme", yes=True)
        call_command("apply", file=str(file), tenant="acme", yes=True)
        third = write("three", server.url)
        form = {"text": json.dumps(third["document"]), "digest": third["digest"], "reason": "for a test", "do": "apply"}
        page = make_person(tenant, "ophelia", Role.OWNER).client().post("/configuration", form, follow=True)

    said = f"{server.url}/v1 does not answer as providers of the kind anthropic do."
    [warning] = applied.json()["warnings"]
    assert warning.startswith(f"one: {said}")
    assert capsys.readouterr().out.count(f"! two: {said}") == 1
    assert f"three: {said}" in page.content.decode()
    assert ModelProvider.objects.count() == len(server.heard) == 3
