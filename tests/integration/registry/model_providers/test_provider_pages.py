"""Provider pages: does a person connect, change and stop a provider in the console, and is its key tried, kept and never shown?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.members.services import give_permission
from access.roles import Role
from evidence.models import Fact
from registry.model_providers.circuits import FAILURES, count_failure
from registry.models import ModelCircuit, ModelProvider, ModelProviderState, Secret
from registry.secrets.services import set_secret
from tests.conftest import make_person
from tests.support.connected_models import MODEL, PROVIDER, connect_scripted_model, connect_scripted_provider
from tests.support.model_servers import json_reply, model_server

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person
    from tests.support.http_server import Heard
    from tests.support.model_servers import Reply

pytestmark = pytest.mark.django_db
KEY = "sk-quokka-of-the-console"
LIST = json_reply({"object": "list", "data": [{"id": "gpt-5", "object": "model"}]})
REFUSAL = json_reply({"error": {"message": f"no such key {KEY}", "type": "invalid_request_error"}}, 401)


@pytest.fixture(autouse=True)
def _loopback(settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]


def for_key_holders(heard: Heard) -> Reply:
    return LIST if heard.headers.get("authorization") == f"Bearer {KEY}" else REFUSAL


def said(url: str, **more: str) -> dict[str, str]:
    return {"name": "shop", "kind": "openai", "address": f"{url}/v1", "key": KEY, "reason": "for a test", **more}


@pytest.mark.req("LLM-10")
def test_a_key_that_the_provider_takes_is_kept_and_never_shown(operator: Person) -> None:
    client = operator.client()
    with model_server(for_key_holders) as server:
        answer = client.post("/model-providers/new-provider", said(server.url), follow=True)

    row = ModelProvider.objects.get()
    assert (answer.redirect_chain[0][0], row.secret) == ("/model-providers/shop", "shop.key")
    assert Secret.objects.get().name == "shop.key"
    assert "The provider takes the key." in answer.content.decode()
    for path in ("/model-providers", "/model-providers/shop", "/model-providers/shop/edit"):
        assert KEY not in client.get(path).content.decode()
    assert KEY not in repr([fact.text for fact in Fact.objects.all()])
    kinds = set(Fact.objects.values_list("kind", flat=True))
    assert {"secret.set", "model_provider.connected"} <= kinds


@pytest.mark.req("LLM-10")
def test_a_key_that_the_provider_refuses_is_not_kept_unless_a_person_says_so(operator: Person) -> None:
    client = operator.client()
    with model_server(REFUSAL) as server:
        answer = client.post("/model-providers/new-provider", said(server.url))
        page = answer.content.decode()
        assert answer.status_code == 422
        assert "does not take this key" in page
        assert KEY not in page
        assert (ModelProvider.objects.count(), Secret.objects.count()) == (0, 0)
        asked = len(server.heard)

        kept = client.post("/model-providers/new-provider", said(server.url, untested="1"))

    assert kept.status_code == 302
    assert Secret.objects.get().name == "shop.key"
    with_key = [each for each in server.heard[asked:] if "authorization" in each.headers]
    assert with_key == []


@pytest.mark.req("LLM-10")
def test_a_list_that_is_open_to_everybody_says_nothing_of_the_key(operator: Person) -> None:
    with model_server(LIST) as server:
        answer = operator.client().post("/model-providers/new-provider", said(server.url), follow=True)

    page = answer.content.decode()
    assert "The key was not tried" in page
    assert "The provider takes the key." not in page


@pytest.mark.req("LLM-10")
def test_a_provider_that_is_away_is_said_in_words(operator: Person) -> None:
    with model_server(LIST) as gone:
        pass

    answer = operator.client().post("/model-providers/new-provider", said(gone.url))

    assert answer.status_code == 422
    assert "The key could not be tried" in answer.content.decode()


@pytest.mark.req("LLM-10")
def test_another_key_takes_the_place_of_the_first_and_closes_the_circuit(operator: Person) -> None:
    set_secret(name="shop.key", value="the first value", by=operator.by)
    with model_server(for_key_holders) as server:
        connect_scripted_provider(operator.by, "shop", kind="openai", address=f"{server.url}/v1", secret="shop.key")
        row = ModelProvider.objects.get()
        for _ in range(FAILURES):
            count_failure(row, "gpt-5", why="PROVIDER.AUTH")
        form = said(server.url, secret="shop.key") | {"retries": "3", "total_s": "120"}
        answer = operator.client().post("/model-providers/shop/edit", form)

    row.refresh_from_db()
    assert answer.status_code == 302, answer.content
    assert (Secret.objects.get().number, row.secret) == (2, "shop.key")
    assert row.settings == {"timeouts": {"total_s": 120}, "retries": 3}
    assert not ModelCircuit.objects.exists()


@pytest.mark.req("LLM-10")
def test_a_secret_of_something_else_is_not_overwritten_by_chance(operator: Person) -> None:
    set_secret(name="shop.key", value="of another tool", by=operator.by)
    form = {"name": "shop", "kind": "anthropic", "key": KEY, "reason": "for a test", "untested": "1"}

    answer = operator.client().post("/model-providers/new-provider", form)

    assert answer.status_code == 422
    assert "There is a secret shop.key already" in answer.content.decode()
    assert Secret.objects.get().number == 1


@pytest.mark.req("LLM-10")
def test_what_is_wrong_is_said_at_its_field(operator: Person) -> None:
    form = {"name": "Shop!", "kind": "openai", "total_s": "9000", "options": "{", "reason": "for a test"}
    answer = operator.client().post("/model-providers/new-provider", form)
    assert answer.context["form"].errors.keys() == {"options"}

    answer = operator.client().post("/model-providers/new-provider", form | {"options": "", "name": "shop"})
    assert answer.context["form"].errors.keys() == {"total_s"}

    answer = operator.client().post("/model-providers/new-provider", form | {"options": "", "total_s": ""})
    assert answer.context["form"].errors.keys() == {"name"}
    assert not ModelProvider.objects.exists()


@pytest.mark.req("LLM-10")
def test_a_provider_is_paused_resumed_and_removed_with_a_reason(operator: Person) -> None:
    connect_scripted_model(operator.by)
    client, url = operator.client(), f"/model-providers/{PROVIDER}"

    assert client.post(f"{url}/pause", {"reason": ""}).status_code == 422
    assert client.post(f"{url}/pause", {"reason": "an outage"}).status_code == 302
    assert ModelProvider.objects.get().state == ModelProviderState.PAUSED
    assert "Its provider is paused" in client.get(f"/models/{MODEL}").content.decode()
    assert client.post(f"{url}/enable", {"reason": "over"}).status_code == 302
    assert client.post(f"{url}/nonsense", {"reason": "x"}).status_code == 404
    assert client.post(f"{url}/remove", {"reason": "unused"}).status_code == 302
    assert not ModelProvider.objects.exists()


@pytest.mark.req("LLM-10")
def test_a_circuit_that_is_open_is_seen_in_the_list_and_on_the_page(operator: Person) -> None:
    connect_scripted_model(operator.by)
    row = ModelProvider.objects.get()
    for _ in range(FAILURES):
        count_failure(row, "script", why="PROVIDER.UNAVAILABLE")
    client = operator.client()

    assert "Not asked for now" in client.get("/model-providers").content.decode()
    page = client.get(f"/model-providers/{PROVIDER}").content.decode()
    assert "Open: not asked" in page
    assert "PROVIDER.UNAVAILABLE" in page
    assert "Open: not asked" in client.get("/models").content.decode()


@pytest.mark.req("LLM-10")
def test_who_may_not_keep_secrets_types_no_key(tenant: Tenant, operator: Person) -> None:
    person = make_person(tenant, "mo", Role.AUDITOR)
    owner = make_person(tenant, "owen", Role.OWNER)
    give_permission(user_id=person.user.pk, permission="models.manage", by=owner.by)
    client = person.client()

    page = client.get("/model-providers/new-provider")
    form = {"name": "shop", "kind": "anthropic", "key": KEY, "reason": "for a test"}
    client.post("/model-providers/new-provider", form)

    assert {"key", "secret"} & set(page.context["form"].fields) == set()
    assert ModelProvider.objects.get().secret == ""
    assert not Secret.objects.exists()
