"""Demonstration models: are models of this machine ready to be asked in the demonstration, and only what somebody put there?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command

from access.models import Agent, ApiKey, Grant
from invocations.model_calls.tenant_providers import build_provider_config
from registry.model_providers.connected_models import find_models
from registry.model_providers.services import remove_provider
from registry.models import ModelProvider
from toolhub.demo import local_models, seed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(operator: Person) -> Agent:
    return Agent.objects.create(tenant_id=operator.by.tenant_id, name="demonstration-agent")


@pytest.mark.req("LLM-10")
def test_the_demonstration_may_ask_the_models_of_this_machine(agent: Agent, operator: Person) -> None:
    local_models.connect_local_models(agent, by=operator.by)
    local_models.connect_local_models(agent, by=operator.by)

    provider = ModelProvider.objects.get()
    assert provider.data_classes == ["personal"]
    assert [each.name for each in find_models(provider)] == [
        "model.local.e5",
        "model.local.e5_rerank",
        "model.local.smollm2",
    ]
    assert Grant.objects.get(agent=agent).tools == "model.local.*"


def test_models_that_somebody_removed_stay_away(agent: Agent, operator: Person) -> None:
    local_models.connect_local_models(agent, by=operator.by)
    remove_provider(name="local", reason="Nobody asks it.", by=operator.by)

    local_models.connect_local_models(agent, by=operator.by)

    assert not ModelProvider.objects.exists()


def test_the_demonstrations_key_may_ask_models_where_there_are_any(
    settings: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.TOOLHUB_DATA_DIR = tmp_path  # type: ignore[attr-defined]
    monkeypatch.setattr(local_models, "are_installed", lambda: False)
    before = seed.seed_demo()
    assert before.question() == ""
    monkeypatch.setattr(local_models, "are_installed", lambda: True)

    call_command("seed_demo")

    after = seed.seed_demo()
    assert after.api_key != before.api_key
    assert "models:call" in ApiKey.objects.get(lookup=after.api_key.split("_")[2]).scopes
    assert after.question() in capsys.readouterr().out


@pytest.mark.req("LLM-10")
def test_files_of_models_are_those_of_the_hubs_own_folder(settings: object, tmp_path: Path, operator: Person) -> None:
    settings.TOOLHUB_LOCAL_MODELS = tmp_path  # type: ignore[attr-defined]
    for name in ("qwen.gguf", "notes.txt"):
        (tmp_path / name).touch()
    of_this_machine, elsewhere = (
        build_provider_config(ModelProvider(tenant_id=operator.by.tenant_id, name="mine", kind=kind), "")
        for kind in ("local", "openai")
    )

    assert of_this_machine.options["files"] == {"qwen": str(tmp_path / "qwen.gguf")}
    assert "files" not in elsewhere.options
