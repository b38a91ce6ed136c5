"""Early imports: is what asks providers imported when the hub starts, where it has any, and does nothing wait for that or fail
by it?
"""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn

from kernel.problems import SchemaInvalid
from registry.model_providers import early_imports
from registry.model_providers.early_imports import import_connected_kinds, start_early_imports
from tests.support.connected_models import connect_scripted_provider
from toolhub import celery
from toolhub.management.commands import serve

if TYPE_CHECKING:
    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def load(kind: str) -> None:
        found.append(kind)
        if kind == "gemini":
            raise SchemaInvalid.at("/kind", "not installed")

    monkeypatch.setattr(early_imports, "load_kind", load)
    return found


@pytest.mark.req("LLM-10")
def test_the_kinds_of_all_tenants_are_imported_each_once_and_others_are_not(
    operator: Person, stranger: Person, imported: list[str]
) -> None:
    connect_scripted_provider(operator.by, "one", kind="openai")
    connect_scripted_provider(operator.by, "two", kind="openai")
    connect_scripted_provider(operator.by, "three", kind="gemini")
    connect_scripted_provider(operator.by, "four")  # of a kind that this program does not bring
    connect_scripted_provider(stranger.by, "one", kind="anthropic")

    import_connected_kinds()

    assert imported == ["anthropic", "gemini", "openai"]


@pytest.mark.req("LLM-10")
def test_a_hub_without_providers_imports_nothing(imported: list[str]) -> None:
    import_connected_kinds()

    assert imported == []


@pytest.mark.req("LLM-10")
def test_nobody_waits_for_it(operator: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    connect_scripted_provider(operator.by, "one", kind="openai")
    begun, go_on = threading.Event(), threading.Event()

    def load(kind: str) -> None:
        begun.set()
        assert go_on.wait(30)

    monkeypatch.setattr(early_imports, "load_kind", load)

    thread = start_early_imports()

    assert begun.wait(30)
    assert thread.is_alive()
    go_on.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.req("LLM-10")
def test_a_server_begins_it_once_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(serve, "start_early_imports", lambda: order.append("imports"))
    monkeypatch.setattr(serve, "start_collapses", lambda: order.append("huge pages"))

    async def started(self: serve.Server, sockets: object = None) -> None:
        self.started = True
        order.append("serves")

    monkeypatch.setattr(uvicorn.Server, "startup", started)
    server = serve.Server(uvicorn.Config("nothing:here"), serves=lambda: order.append("says so"))

    asyncio.run(server.startup())

    assert order == ["serves", "says so", "imports", "huge pages"]


@pytest.mark.req("LLM-10")
def test_a_worker_begins_it_as_well_since_it_asks_the_models_of_runs(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    order: list[str] = []
    settings.TOOLHUB_EMBEDDED = False
    monkeypatch.setattr(early_imports, "start_early_imports", lambda: order.append("imports"))
    monkeypatch.setattr(celery, "start_collapses", lambda: order.append("huge pages"))
    for name in ("start_sandbox", "offer_metrics", "offer_probes"):
        monkeypatch.setattr(celery, name, lambda *_: None)
    monkeypatch.setattr(celery._loops, "start", lambda *_: order.append("loops"))

    celery._start_loops()

    assert order == ["imports", "huge pages", "loops"]


@pytest.mark.req("LLM-10")
def test_what_is_there_once_all_is_imported_is_left_out_of_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(early_imports, "import_connected_kinds", lambda: order.append("imports"))
    monkeypatch.setattr(gc, "collect", lambda: order.append("collects"))
    monkeypatch.setattr(gc, "freeze", lambda: order.append("freezes"))

    early_imports.prepare_process()

    assert order == ["imports", "collects", "freezes"]
