"""Model providers: does what a person says of a provider count with the next call, and is each change a fact?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from kernel.problems import Conflict, SchemaInvalid
from registry.decision_context import load_decision_context
from registry.installations.services import pause_installation, settings_for_run
from registry.model_providers.connected_models import change_model, remove_model
from registry.model_providers.services import change_provider, enable_provider, pause_provider, remove_provider
from registry.model_providers.settings import ProviderSettings
from registry.models import Installation, InstallationState, ModelProvider, Tool, ToolState
from registry.problems import SecretInUse, ToolPaused, UnknownModel
from registry.secrets.services import remove_secret, set_secret
from registry.tools.callability import check_callable
from tests.support.calls import assert_problem
from tests.support.connected_models import MODEL, PROVIDER, connect_scripted_model, connect_scripted_provider

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ONE, OTHER = "https://one.models.example/v1", "https://other.models.example/v1"


def kinds() -> list[str]:
    return list(Fact.objects.filter(kind__startswith="model").order_by("id").values_list("kind", flat=True))


def current() -> Any:
    tool = Tool.objects.select_related("current").get(name=MODEL)
    assert tool.current is not None
    return tool.current


@pytest.mark.req("LLM-10")
def test_another_address_and_key_count_with_the_next_call_and_are_a_new_version(operator: Person) -> None:
    for name in ("one.key", "other.key"):
        set_secret(name=name, value=f"the value of {name}", by=operator.by)
    connect_scripted_provider(operator.by, address=ONE, secret="one.key")
    tool = connect_scripted_model(operator.by)

    change_provider(name=PROVIDER, address=OTHER, secret="other.key", reason="moved", by=operator.by)

    version = current()
    installation = Installation.objects.get(name=MODEL)
    _, secrets = settings_for_run(tenant_id=tool.tenant_id, name=MODEL, version=version)
    assert (version.version, installation.version_id) == ("1.0.1", version.pk)
    assert version.view.capabilities["net"][0]["host"] == "other.models.example"
    assert secrets == {"API_KEY": "the value of other.key"}
    assert kinds() == ["model_provider.connected", "model.connected", "model_provider.changed", "model.changed"]


@pytest.mark.req("LLM-10")
def test_a_changed_model_is_a_new_version_with_what_was_left_out_as_it_was(operator: Person) -> None:
    connect_scripted_model(operator.by, window_tokens=4096, features={"seed": "passed"})

    change_model(provider=PROVIDER, alias="main", model="script-2", reason="newer", by=operator.by)

    part = current().view.model
    assert (part.name, part.window_tokens, part.features) == ("script-2", 4096, {"seed": "passed"})
    assert [change["kind"] for change in current().changes if change["kind"] == "model.changed"] == ["model.changed"]


@pytest.mark.req("LLM-10")
def test_a_paused_provider_stops_its_models_and_a_model_that_was_paused_itself_stays_so(
    operator: Person, caller: Caller
) -> None:
    connect_scripted_model(operator.by)
    connect_scripted_model(operator.by, "small")
    pause_installation(name="model.script.small", reason="too small", by=operator.by)

    pause_provider(name=PROVIDER, reason="an outage", by=operator.by)
    context = load_decision_context(tenant_id=operator.by.tenant_id, agent_id=caller.agent.pk, tool=MODEL)
    with pytest.raises(ToolPaused, match="an outage"):
        check_callable(context)

    enable_provider(name=PROVIDER, reason="over", by=operator.by)
    states = dict(Installation.objects.values_list("name", "state"))
    assert set(Tool.objects.values_list("state", flat=True)) == {ToolState.ENABLED}
    assert states == {MODEL: InstallationState.ENABLED, "model.script.small": InstallationState.PAUSED}


@pytest.mark.req("LLM-10")
def test_a_provider_is_paused_and_enabled_once(operator: Person) -> None:
    connect_scripted_provider(operator.by)
    with pytest.raises(Conflict, match="is enabled already"):
        enable_provider(name=PROVIDER, reason="again", by=operator.by)


@pytest.mark.req("LLM-10")
def test_a_model_that_is_connected_under_a_paused_provider_waits_with_it(operator: Person) -> None:
    connect_scripted_provider(operator.by)
    pause_provider(name=PROVIDER, reason="an outage", by=operator.by)

    assert connect_scripted_model(operator.by).state == ToolState.PAUSED


@pytest.mark.req("LLM-10")
def test_a_removed_model_is_gone_and_may_be_connected_again(operator: Person) -> None:
    connect_scripted_model(operator.by)
    remove_model(provider=PROVIDER, alias="main", reason="unused", by=operator.by)
    with pytest.raises(UnknownModel):
        change_model(provider=PROVIDER, alias="main", reason="gone", by=operator.by)

    connect_scripted_model(operator.by)

    assert Installation.objects.get(name=MODEL).state == InstallationState.ENABLED
    assert current().version == "1.0.1"


@pytest.mark.req("LLM-10")
def test_a_removed_provider_takes_its_models_with_it(operator: Person) -> None:
    connect_scripted_model(operator.by)

    remove_provider(name=PROVIDER, reason="unused", by=operator.by)

    fact = Fact.objects.get(kind="model_provider.removed")
    assert not ModelProvider.objects.exists()
    assert Installation.objects.get(name=MODEL).state == InstallationState.REMOVED
    assert json.loads(bytes(fact.leaf))["data"]["models"] == [MODEL]


@pytest.mark.req("LLM-10")
def test_the_secret_of_a_provider_is_not_removed(operator: Person) -> None:
    set_secret(name="one.key", value="the value of one.key", by=operator.by)
    connect_scripted_provider(operator.by, secret="one.key")

    with pytest.raises(SecretInUse, match="the model provider script"):
        remove_secret(name="one.key", by=operator.by)


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize(
    ("terms", "pointer"),
    [
        ({"name": "Open"}, "/name"),
        ({"name": "a-b"}, "/name"),
        ({"kind": "Open AI"}, "/kind"),
        ({"address": "http://models.example"}, "/address"),
        ({"address": "https://10.0.0.1/v1"}, "/address"),
        ({"address": "https://localhost/v1"}, "/address"),
        ({"address": "https://user:word@models.example"}, "/address"),
        ({"secret": "nobody.has"}, "/secret"),
        ({"data_classes": ["Personal"]}, "/data_classes/0"),
        ({"settings": {"speed": 1}}, "/settings/speed"),
        ({"settings": {"retries": 100}}, "/settings/retries"),
        ({"settings": {"timeouts": {"total_s": 301}}}, "/settings/timeouts/total_s"),
        ({"settings": {"timeouts": {"total_s": float("nan")}}}, "/settings/timeouts/total_s"),
        ({"settings": {"options": {"x": "y" * 5000}}}, "/settings/options"),
    ],
)
def test_terms_that_no_provider_can_have_are_refused_by_their_place(
    terms: dict[str, Any], pointer: str, operator: Person
) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        connect_scripted_provider(operator.by, **terms)

    assert refused.value.details["findings"][0]["pointer"] == pointer
    assert not ModelProvider.objects.exists()


@pytest.mark.req("LLM-10")
def test_settings_have_what_is_usual_filled_in() -> None:
    settings = ProviderSettings.from_json({"timeouts": {"idle_s": 5}, "options": {"says": "Hi"}})

    assert (settings.timeouts.idle_s, settings.timeouts.total_s, settings.retries) == (5, 300, 2)
    assert settings.options == {"says": "Hi"}


@pytest.mark.req("LLM-10")
def test_providers_and_models_are_connected_changed_and_removed_over_rest(caller: Caller) -> None:
    said = {"reason": "for a test"}
    at = f"/model-providers/{PROVIDER}"
    made = caller.post("/model-providers", {"name": PROVIDER, "kind": "scripted", **said})
    model = caller.post(f"{at}/models", {"alias": "main", "model": "script", **said})
    changed = caller.patch(f"{at}/models/main", {"window_tokens": 4096, **said})
    paused = caller.post(f"{at}/pause", said)

    assert [made.status_code, model.status_code, changed.status_code, paused.status_code] == [201, 201, 200, 200]
    assert changed.json()["data"]["window_tokens"] == 4096
    shown = caller.get(at).json()["data"]
    assert (shown["state"], shown["models"][0]["id"], shown["models"][0]["state"]) == ("paused", MODEL, "paused")
    assert caller.post(f"{at}/models/main/remove", said).status_code == 204
    assert caller.post(f"{at}/remove", said).status_code == 204
    assert_problem(caller.get(at), 404, "PROVIDER.UNKNOWN")
    assert caller.get("/model-providers").json()["data"] == {"model_providers": [], "next": None}


@pytest.mark.req("LLM-10")
def test_another_tenants_provider_is_not_there(operator: Person, foreign_caller: Caller) -> None:
    connect_scripted_model(operator.by)

    assert_problem(foreign_caller.get(f"/model-providers/{PROVIDER}"), 404, "PROVIDER.UNKNOWN")
    assert foreign_caller.get("/model-providers").json()["data"]["model_providers"] == []


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize("person", ["operator", "developer"])
def test_people_connect_providers_where_their_role_lets_them(person: str, request: pytest.FixtureRequest) -> None:
    client = request.getfixturevalue(person).client()

    answer = client.get("/api/v1/model-providers")

    assert answer.status_code == (200 if person == "operator" else 403)


@pytest.fixture
def granted(operator: Person, grant: Callable[..., Any]) -> None:
    connect_scripted_model(operator.by, window_tokens=4096)
    connect_scripted_model(operator.by, "vectors", operation="embed")
    grant("model.script.main")


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("granted")
def test_an_agent_finds_the_models_that_a_grant_names(caller: Caller) -> None:
    answer = caller.get("/models")

    (model,) = answer.json()["data"]["models"]
    assert (model["id"], model["provider"], model["operation"]) == (MODEL, "script", "chat")
    assert caller.get("/models?operation=embed").json()["data"]["models"] == []
    assert caller.get(f"/models/{MODEL}").json()["data"] == caller.get("/models/main").json()["data"] == model


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("granted")
def test_what_an_agent_may_not_call_is_kept_back_with_the_reason(caller: Caller) -> None:
    kept_back = assert_problem(caller.get("/models/model.script.vectors"), 404, "MODEL.UNKNOWN")
    assert "has no grant" in kept_back["detail"]
    assert_problem(caller.get("/models/model.script.nothing"), 404, "MODEL.UNKNOWN")


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("granted")
def test_an_alias_that_two_providers_have_names_neither(
    caller: Caller, operator: Person, grant: Callable[..., Any]
) -> None:
    connect_scripted_model(operator.by, provider="second")
    grant("model.second.main")

    body = assert_problem(caller.get("/models/main"), 404, "MODEL.UNKNOWN")

    assert "model.script.main, model.second.main" in body["detail"]


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("granted")
def test_the_tag_of_the_list_holds_until_what_it_says_changes(caller: Caller, operator: Person) -> None:
    tag = caller.get("/models").headers["ETag"]
    assert caller.get("/models", **{"If-None-Match": tag}).status_code == 304

    change_model(provider=PROVIDER, alias="main", window_tokens=8192, reason="larger", by=operator.by)

    assert caller.get("/models", **{"If-None-Match": tag}).status_code == 200


@pytest.mark.req("LLM-10")
@pytest.mark.usefixtures("granted")
def test_a_paused_model_is_in_no_list(caller: Caller, operator: Person) -> None:
    pause_provider(name=PROVIDER, reason="an outage", by=operator.by)

    assert caller.get("/models").json()["data"]["models"] == []
    assert "an outage" in assert_problem(caller.get(f"/models/{MODEL}"), 404, "MODEL.UNKNOWN")["detail"]
