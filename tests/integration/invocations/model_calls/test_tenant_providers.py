"""Tenant providers: is it known before a call begins whether there is anybody to ask, at little cost?"""

from __future__ import annotations

from importlib.metadata import EntryPoints, entry_points
from typing import TYPE_CHECKING, Any

import pytest

from invocations.model_calls import model_runs, tenant_providers
from invocations.model_calls.kept_providers import shelf
from llm import provider_factory
from llm.providers.kinds import MODULES
from registry.model_providers.kind_checks import check_kind
from registry.models import ModelProvider
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of
from tests.support.connected_models import connect_scripted_model, connect_scripted_provider
from tests.support.foreign_kinds import installed_foreign_kinds
from tests.support.model_calls import ask, say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db


@pytest.fixture
def connect_kind(operator: Person, grant: Callable[..., Any]) -> Callable[[str], None]:
    def connect(kind: str) -> None:
        grant("model.*")
        connect_scripted_provider(operator.by, "other", kind=kind)
        connect_scripted_model(operator.by, provider="other", unpriced="count")

    return connect


def break_down(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.req("LLM-10")
@pytest.mark.unmapped
def test_a_run_that_cannot_be_prepared_gives_its_provider_back(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_runs, "record_sent_files", break_down)

    assert ask(caller, say("Hello")).status_code == 500
    assert [each.uses for each in shelf._kept.values()] == [0]


@pytest.mark.req("LLM-10")
@pytest.mark.unmapped
def test_a_run_whose_fallback_cannot_be_built_gives_the_providers_before_it_back(
    caller: Caller, operator: Person, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_scripted_model(operator.by, "first", unpriced="count", fallbacks=["model.script.main"])

    kept = tenant_providers.build_provider_config

    def build_once(*arguments: Any) -> Any:
        monkeypatch.setattr(tenant_providers, "build_provider_config", break_down)
        return kept(*arguments)

    monkeypatch.setattr(tenant_providers, "build_provider_config", build_once)

    assert ask(caller, say("Hello"), model="model.script.first").status_code == 500
    assert [each.uses for each in shelf._kept.values()] == [0]


@pytest.mark.req("LLM-10")
def test_a_call_is_refused_where_what_its_kind_of_provider_needs_is_not_installed(
    caller: Caller, connect_kind: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_pydantic_ai.py").write_text("import pydantic_ai.models.nothing\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(MODULES, "needy", "needs_pydantic_ai")
    connect_kind("needy")

    refused = ask(caller, say("Hello"), model="model.other.main")

    assert_problem(refused, 503, "MODEL.NOT_READY")
    assert "requirements-models.lock" in refused.json()["detail"]


@pytest.mark.req("LLM-10")
def test_what_is_installed_is_looked_through_once_for_all_calls(
    caller: Caller, connect_kind: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def look(group: str) -> EntryPoints:
        looked.append(group)
        return entry_points(group=group)

    monkeypatch.setattr(provider_factory, "entry_points", look)
    provider_factory.list_foreign_kinds.cache_clear()
    connect_kind("nobodys")

    for _ in range(2):
        assert_problem(ask(caller, say("Hello"), model="model.other.main"), 503, "MODEL.NOT_READY")

    assert looked == ["llm.providers"]


@pytest.mark.req("LLM-10")
def test_models_of_a_kind_that_another_distribution_brings_are_asked_as_any(
    caller: Caller, connect_kind: Callable[[str], None], tmp_path: Path
) -> None:
    with installed_foreign_kinds(tmp_path):
        said = check_kind("others", "")
        connect_kind("others")
        answer = ask(caller, say("Hello"), model="model.other.main")

    assert said == ""
    assert answer.json()["data"]["text"] == "Hi"
    assert kinds_of(row_of(answer)) == PAIR


@pytest.mark.req("LLM-10")
@pytest.mark.parametrize("kind", ["broken", "openai_compatible"])
def test_a_provider_that_cannot_be_made_is_no_mistake_of_the_caller(
    kind: str, caller: Caller, connect_kind: Callable[[str], None], tmp_path: Path
) -> None:
    with installed_foreign_kinds(tmp_path):
        connect_kind(kind)
        ModelProvider.objects.filter(kind="openai_compatible").update(settings={"options": {"flavour": "sweet"}})
        answer = ask(caller, say("Hello"), model="model.other.main")

    assert_problem(answer, 503, "MODEL.NOT_READY")
    assert kinds_of(row_of(answer)) == PAIR
    assert "canary" not in answer.content.decode()
