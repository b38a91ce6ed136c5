"""Connected models: is a model that a tenant connects a tool of another kind, that can be granted and called at once?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from evidence.services import open_free_text
from kernel.problems import Conflict, SchemaInvalid
from registry.installations.services import settings_for_run
from registry.model_providers.connected_models import connect_model
from registry.models import Installation, Tool, ToolKind, ToolState, ToolVersion, VersionState
from registry.problems import ManifestInvalid, UnknownModelProvider
from registry.secrets.services import set_secret
from registry.versions.compiler import compiled_version
from registry.versions.services import submit_version
from tests.support.connected_models import MODEL, connect_scripted_model, connect_scripted_provider
from tests.support.manifests import manifest
from unitools.manifest_validation import validate_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Person

pytestmark = pytest.mark.django_db
ADDRESS = "https://api.models.example/v1"
PART: dict[str, Any] = {
    "provider": "script",
    "name": "script",
    "operation": "chat",
    "window_tokens": None,
    "max_output_tokens": None,
    "default_output_tokens": 1024,
    "features": {},
    "unpriced": "refuse",
}


def data_of(fact: Fact) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(bytes(fact.leaf))["data"]
    return found


def connect_with_key(by: Any, **terms: Any) -> Tool:
    set_secret(name="models.key", value="a key of the provider", by=by)
    connect_scripted_provider(by, address=ADDRESS, secret="models.key", data_classes=["personal"])
    return connect_scripted_model(by, **terms)


@pytest.mark.req("LLM-10")
def test_a_connected_model_is_an_enabled_tool_of_the_kind_model_that_is_installed(operator: Person) -> None:
    tool = connect_scripted_model(operator.by)

    installation = Installation.objects.get(name=MODEL)
    assert (tool.name, tool.kind, tool.state) == (MODEL, ToolKind.MODEL, ToolState.ENABLED)
    assert installation.version == tool.current
    version = ToolVersion.objects.get()
    assert (version.version, version.review_state, version.build_digest) == ("1.0.0", VersionState.APPROVED, "")


@pytest.mark.req("LLM-10")
def test_a_tool_that_was_registered_is_of_the_kind_tool(submit: Callable[..., ToolVersion]) -> None:
    assert submit().tool.kind == ToolKind.TOOL


@pytest.mark.req("LLM-10")
def test_the_manifest_of_a_model_names_its_host_its_key_and_its_classes_of_data(operator: Person) -> None:
    version = ToolVersion.objects.get(tool=connect_with_key(operator.by))

    assert version.view.capabilities == {"net": [{"host": "api.models.example", "port": 443, "scheme": "https"}]}
    assert [(each["name"], each["hosts"]) for each in version.view.secrets] == [("API_KEY", ["api.models.example"])]
    assert version.view.data_classes == ["personal"]


@pytest.mark.req("LLM-10")
def test_a_model_that_writes_less_than_usual_needs_no_second_number(operator: Person) -> None:
    tool = connect_scripted_model(operator.by, max_output_tokens=500)

    model = compiled_version(tool.current_id).manifest.model  # type: ignore[arg-type]
    assert model is not None
    assert model.max_output_tokens == 500


@pytest.mark.req("LLM-10")
def test_a_provider_at_a_numeric_address_is_a_network_of_one(operator: Person, settings: Any) -> None:
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    connect_scripted_provider(operator.by, address="http://127.0.0.1:8080/v1")

    version = ToolVersion.objects.get(tool=connect_scripted_model(operator.by))

    assert version.view.capabilities == {"cidr": [{"cidr": "127.0.0.1/32", "ports": ["8080"]}]}


@pytest.mark.req("LLM-10")
def test_what_the_hub_writes_fits_the_published_schema_but_for_the_implementation(operator: Person) -> None:
    version = ToolVersion.objects.get(tool=connect_with_key(operator.by))

    assert [each.message for each in validate_manifest(version.manifest, "")] == ["implementation is missing."]


@pytest.mark.req("LLM-10")
def test_the_compiled_version_of_a_model_has_no_module_and_says_what_the_model_is(operator: Person) -> None:
    features = {"tools": "passed", "seed": "warned"}
    tool = connect_scripted_model(operator.by, operation="chat", window_tokens=8192, features=features)

    compiled = compiled_version(tool.current_id)  # type: ignore[arg-type]
    model = compiled.manifest.model
    assert model is not None
    assert compiled.manifest.is_model
    assert (model.name, model.window_tokens, model.default_output_tokens) == ("script", 8192, 1024)
    assert model.features == features
    assert (compiled.manifest.module, compiled.manifest.package, compiled.manifest.program) == ("", "", ())
    assert compiled.attributes["group"] == "model"


@pytest.mark.req("LLM-10")
def test_a_run_gets_the_key_that_the_provider_names(operator: Person) -> None:
    tool = connect_with_key(operator.by)

    _, secrets = settings_for_run(tenant_id=tool.tenant_id, name=MODEL, version=ToolVersion.objects.get())

    assert secrets == {"API_KEY": "a key of the provider"}


@pytest.mark.req("LLM-10")
def test_the_fact_of_a_connected_model_says_who_which_model_and_why(operator: Person) -> None:
    connect_with_key(operator.by)

    fact = Fact.objects.get(kind="model.connected")
    model, provider = data_of(fact), data_of(Fact.objects.get(kind="model_provider.connected"))
    assert (model["provider"], model["model"], model["operation"]) == ("script", "script", "chat")
    assert (fact.tool, fact.actor_id, open_free_text(fact)["reason"]) == (MODEL, operator.by.id, "for a test")
    assert (provider["host"], provider["secret"]) == ("api.models.example", "models.key")
    assert "a key of" not in str([model, provider])


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize(
    ("terms", "pointer"),
    [
        ({"alias": "Main"}, "/alias"),
        ({"alias": "a.b"}, "/alias"),
        ({"model": ""}, "/model"),
        ({"operation": "draw"}, "/operation"),
        ({"unpriced": "free"}, "/unpriced"),
        ({"window_tokens": 0}, "/window_tokens"),
        ({"max_output_tokens": True}, "/max_output_tokens"),
        ({"max_output_tokens": 100, "default_output_tokens": 200}, "/default_output_tokens"),
        ({"features": {"dreams": "passed"}}, "/features"),
        ({"features": {"seed": "maybe"}}, "/features/seed"),
        ({"features": {"tools": "warned"}}, "/features"),
    ],
)
def test_terms_that_no_model_can_have_are_refused_by_their_place(
    terms: dict[str, Any], pointer: str, operator: Person
) -> None:
    with pytest.raises(SchemaInvalid) as refused:
        connect_scripted_model(operator.by, **terms)

    assert refused.value.details["findings"][0]["pointer"] == pointer
    assert not Tool.objects.exists()


@pytest.mark.req("LLM-10")
def test_a_model_is_connected_once_under_a_name_and_only_under_a_provider(operator: Person) -> None:
    connect_scripted_model(operator.by)

    with pytest.raises(Conflict, match=r"model\.script\.main is there already"):
        connect_scripted_model(operator.by)
    with pytest.raises(UnknownModelProvider):
        connect_model(provider="other", alias="main", model="script", reason="for a test", by=operator.by)


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"model": PART}, "model.written_by_author"),
        ({"model": PART, "implementation": None}, "model.written_by_author"),
        ({"id": "model.script.main"}, "model.group_reserved"),
    ],
)
def test_a_package_that_claims_to_be_a_model_is_refused(changes: dict[str, Any], rule: str, developer: Person) -> None:
    with pytest.raises(ManifestInvalid) as refused:
        submit_version(document=manifest(**changes), by=developer.by)

    assert [each["rule"] for each in refused.value.details["findings"]] == [rule]
    assert not Tool.objects.exists()
