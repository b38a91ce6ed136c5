"""Offline loop: does a model without a network propose, a person agree in a browser, and the answer cite what the tool said?

The hub runs in a network namespace in which there is nothing but itself, with a model in its own process: a scripted one, and as a
long test the real one of `make models`. What it proposes is held by a rule of the policy (scripts/demonstration).
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from scripts.demonstration.hub_clients import DemoAgent, DemoPerson
from scripts.demonstration.model_story import QUESTION, WANTED, build_run_request
from scripts.demonstration.shop_assistant import prepare_assistant
from scripts.provision import peers
from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, in_each_variant
from tests.e2e.conftest import UNPAIRED, Embedded, copy_of
from tests.e2e.processes import ROOT, python
from tests.support.network_namespaces import list_interfaces, relay_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

MODEL = "model.local.smollm2"
SCRIPTED = ROOT / "tests" / "support" / "local_model_packages"
TOTAL = "1898.00"


@dataclass(frozen=True, slots=True)
class World:
    hub: Embedded
    agent: DemoAgent

    def begin_run(self, purpose: str) -> str:
        answer = self.agent.ask("POST", "/api/v1/runs", build_run_request(self.agent, MODEL, purpose=purpose))
        assert answer.status == 202, answer
        return str(answer.body["data"]["run_id"])

    def follow(self, run_id: str, to: str) -> Any:
        """The data of the first event of this kind."""
        return next(data for kind, data in self.agent.follow(f"/api/v1/runs/{run_id}/events") if kind == to)


@contextmanager
def served_alone(prepared: Embedded, data: Path, packages: Path) -> Iterator[World]:
    """A hub with models of its own process, which nobody can reach but through a file, and which can reach nobody."""
    hub = copy_of(prepared, data, PYTHONPATH=str(packages))
    hub.seed()
    assert hub.credentials
    port = hub.env["TOOLHUB_BIND"].rpartition(":")[2]
    with tempfile.TemporaryDirectory(prefix="toolhub-") as folder:  # the path of a socket is short
        path = Path(folder) / "hub.sock"
        hub.prefix = python("-m", "tests.support.network_namespaces", str(path), port)
        with relay_port(int(port), path), hub.served():
            assert hub.process
            assert list_interfaces(hub.process.pid) == {"lo"}
            owner, operator = DemoPerson(hub.url), DemoPerson(hub.url)
            owner.sign_in("oona", hub.credentials.password("oona"))
            operator.sign_in("olivia", hub.credentials.password("olivia"))
            agent, model = prepare_assistant(hub.url, data, "local:smollm2", owner=owner, operator=operator)
            assert model == MODEL
            yield World(hub, agent)
    assert hub.count(UNPAIRED) == 0


@pytest.fixture(scope="module")
def scripted(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served_alone(prepared, tmp_path_factory.mktemp("scripted") / "hub", SCRIPTED) as world:
        yield world


@pytest.fixture(scope="module")
def real(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with served_alone(prepared, tmp_path_factory.mktemp("real") / "hub", peers.ensure_local_models()) as world:
        yield world


def compare_and_approve(olivia: Visitor, purpose: str) -> None:
    olivia.go("Approvals")
    olivia.check("offline-approvals")
    olivia.page.get_by_role("row").filter(has_text=purpose).get_by_role("link").first.click()
    olivia.sees("Your decision")
    olivia.ready()
    for value in WANTED.values():
        expect(olivia.page.get_by_role("main")).to_contain_text(str(value))
    olivia.check("offline-consent")
    olivia.label("Reason").fill("It is what the customer asked for.")
    olivia.button("Approve this call").click()
    expect(olivia.button("Approve this call")).to_have_count(0, timeout=PATIENCE_MS)
    olivia.ready()


def read_sources(visitor: Visitor, run_id: str, quote: str) -> None:
    """What the answer rests on stands on the run's page, each source with the call that it is of."""
    visitor.go("Invocations")
    visitor.follow("Agent runs")
    visitor.check(f"offline-runs-{visitor.name}")
    visitor.page.locator(f'main a[href="/runs/{run_id}"]').first.click()
    expect(visitor.page).to_have_url(f"{visitor.url}/runs/{run_id}", timeout=PATIENCE_MS)
    visitor.ready()
    values = visitor.page.locator("#values")
    for source in ("demo-price-list", "commerce.pricing.get_realtime_quote"):
        row = values.get_by_role("row").filter(has_text=source)
        expect(row.locator(f'a[href="/invocations/{quote}"]')).to_be_visible()
    expect(visitor.page.get_by_role("main")).not_to_contain_text(TOTAL)
    visitor.check(f"offline-run-{visitor.name}")


def reveal_answer(aaron: Visitor, said: str) -> None:
    """The model's words beside what the tool answered: the figure is the same."""
    aaron.label("Reason").fill("The auditor compares the answer with the quote.")
    aaron.button("Reveal and record").click()
    revealed = aaron.page.locator("#values .revealed")
    expect(revealed.get_by_text(said)).to_be_visible(timeout=PATIENCE_MS)
    expect(revealed.get_by_text(TOTAL)).not_to_have_count(0)
    aaron.check("offline-answer")


def walk(world: World, browser: Browser, variant: Variant, shots: Path) -> None:
    hub, purpose = world.hub, f"Answer the customer ({variant.name})."
    assert hub.credentials
    run_id = world.begin_run(purpose)
    with Visitor(browser, hub.url, variant, shots) as olivia, Visitor(browser, hub.url, variant, shots) as aaron:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        world.follow(run_id, "tool.held")
        compare_and_approve(olivia, purpose)
        end = world.follow(run_id, "end")["data"]
        assert (end["state"], end["stop_reason"]) == ("succeeded", "finished"), end
        said, quote = end["answer"]["text"], end["steps"][1]["call"]["call_id"]
        assert TOTAL in said, f"{QUESTION} {said}"
        read_sources(olivia, run_id, quote)
        aaron.sign_in("aaron", hub.credentials.password("aaron"))
        read_sources(aaron, run_id, quote)
        reveal_answer(aaron, said)


@pytest.mark.req("LLM-3", "LLM-12", "CARD-3")
@in_each_variant
def test_a_scripted_model_proposes_a_person_agrees_and_the_answer_cites_the_quote(
    scripted: World, browser: Browser, variant: Variant, shots: Path
) -> None:
    walk(scripted, browser, variant, shots)


@pytest.mark.long
@pytest.mark.req("LLM-3", "LLM-12", "CARD-3")
@in_each_variant
def test_a_real_model_of_this_machine_does_it_without_a_network(
    real: World, browser: Browser, variant: Variant, shots: Path
) -> None:
    walk(real, browser, variant, shots)
