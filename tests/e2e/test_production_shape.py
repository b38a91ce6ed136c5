"""Web and worker as separate processes on PostgreSQL and Redis: the same job, and what happens when a part fails?"""

from __future__ import annotations

import signal
from functools import partial
from http.cookiejar import CookieJar
from itertools import islice
from typing import TYPE_CHECKING
from urllib.request import HTTPCookieProcessor, build_opener
from uuid import UUID

import psycopg
import pytest

from kernel.ids import decode, encode
from scripts.provision.processes import free_port
from tests.e2e.conftest import RUNNING
from tests.e2e.console import Person
from tests.e2e.processes import PATIENCE_S, Process, python, run, until
from tests.e2e.production import Production, production_at
from tests.e2e.wire import Answer, answers, in_background, request

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ECHO, SLEEPS = "sample.tools.echo", "sample.tools.sleeps"
QUOTE = "commerce.pricing.get_realtime_quote"
REMOTE_SHUTDOWN = "from toolhub.celery import app; app.control.shutdown()"
BUSY = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND left(state, 19) = 'idle in transaction'
        AND state_change < now() - interval '1 second'
"""


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    with production_at(tmp_path_factory.mktemp("production")) as hub:
        yield hub


def check_unavailable(answer: Answer, reason: str) -> None:
    assert (answer.status, answer.reason) == (503, reason), answer
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.req("CARD-5", "CARD-4", "SVC-6", "TOOLS-17", "TOOLS-18")
def test_a_call_goes_through_web_queue_worker_and_sandbox(production: Production) -> None:
    production.use_worker()

    answer = production.agent.invoke(QUOTE, {"sku": "HEADPHONES-ANC", "quantity": 2, "currency": "EUR"})

    assert answer.status == 200, answer
    assert answer.json()["data"]["quantity"] == 2
    end = production.agent.check_pair(answer.call_id)
    assert end["outcome"] == "succeeded"
    assert end["data"]["run"]["box"], "it ran in a container"
    assert end["data"]["run"]["image"].startswith("sha256:")


@pytest.mark.req("CARD-3", "CARD-4")
def test_a_page_at_one_web_process_hears_of_a_call_through_another(production: Production, tmp_path: Path) -> None:
    production.use_worker()
    here, jar = f"127.0.0.1:{free_port()}", CookieJar()
    second = Process(python("manage.py", "serve"), production.env | {"TOOLHUB_BIND": here}, tmp_path / "second.log")
    try:
        second.wait_for(lambda: answers(f"http://{here}/readyz"), "the second web process is ready")
        opener = build_opener(HTTPCookieProcessor(jar))
        password = production.credentials.password("olivia")
        with (
            Person(f"http://{here}", "olivia", password, jar),
            opener.open(f"http://{here}/events", timeout=PATIENCE_S) as stream,
        ):
            lines = iter(stream.readline, b"")
            assert next(lines) == b"retry: 2000\n"

            answer = production.agent.invoke(QUOTE, {"sku": "HEADPHONES-ANC", "quantity": 1, "currency": "EUR"})

            assert answer.status == 200, answer
            assert any(b"calls" in line.removeprefix(b"data: ").split() for line in islice(lines, 20))
    finally:
        second.stop()


@pytest.mark.req("CARD-3", "CARD-6", "TOOLS-19")
def test_a_consent_is_given_in_the_console_and_the_call_is_seen_there(production: Production) -> None:
    production.use_worker()
    agent, draft = production.agent, "commerce.checkout.create_draft_order"
    total = agent.invoke(
        "commerce.checkout.compute_total",
        {
            "lines": [{"sku": "KEYBOARD-MX", "quantity": 1}],
            "destination": {"country": "US", "postal_code": "94105", "state": "CA", "city": "San Francisco"},
            "shipping_option_id": "northfreight.ground.US1",
            "currency": "USD",
        },
    )
    order = {
        "lines": [{"sku": "KEYBOARD-MX", "quantity": 1}],
        "destination": {
            "country": "US",
            "postal_code": "94105",
            "state": "CA",
            "city": "San Francisco",
            "recipient": "A. Buyer",
            "line1": "1 Example Street",
        },
        "shipping_option_id": "northfreight.ground.US1",
        "currency": "USD",
        "expected_total": total.json()["data"]["total"],
    }
    assert agent.invoke(draft, order).json()["error"]["code"] == "NEEDS_USER_CONFIRMATION"
    asked = agent.post("/consents", {"tool": draft, "purpose": "Order what the customer chose."})
    with Person(production.url, "olivia", production.credentials.password("olivia")) as olivia:
        olivia.decide(f"/consents/{asked.json()['data']['id']}", mode="period", reason="The customer agreed.")

        answer = agent.invoke(draft, order)

        assert answer.status == 200, answer
        status, page = olivia.open(f"/invocations/{answer.call_id}")
    assert status == 200
    assert draft in page


@pytest.mark.req("TOOLS-18")
def test_nothing_of_the_database_is_held_while_a_tool_runs(production: Production) -> None:
    production.use_worker()
    waiting = in_background(lambda: production.agent.invoke("sample.tools.keeps_a_secret", {"text": "x", "seconds": 4}))
    production.until_it_runs()

    looks = 0
    while production.count(RUNNING):
        assert production.count(BUSY) == 0
        looks += 1

    assert looks > 1
    assert waiting.answer().status == 200, waiting.answer()


@pytest.mark.req("CARD-5", "TOOLS-18", "TOOLS-20", "SVC-6")
def test_a_killed_worker_means_outcome_unknown_and_nothing_is_run_again(production: Production) -> None:
    worker = production.use_worker()
    waiting = in_background(lambda: production.agent.invoke(SLEEPS, {"text": "x"}))
    production.until_it_runs()

    worker.kill()

    answer = waiting.answer()
    assert (answer.status, answer.reason) == (503, "SANDBOX.WORKER_LOST"), answer
    assert answer.json()["call"]["state"] == "outcome_unknown"
    assert production.agent.check_pair(answer.call_id)["outcome"] == "outcome_unknown"
    until(lambda: not production.boxes(), "the boxes are gone")
    production.use_worker()
    production.ring_again(answer.call_id)
    attempts = "SELECT count(*) FROM invocations_attempt WHERE invocation_id = %s"
    assert production.count(attempts, decode("inv", answer.call_id)) == 1
    assert production.agent.invoke(ECHO, {"text": "next"}).status == 200
    production.agent.check_pair(answer.call_id)


def check_calls_and_cancellation(production: Production) -> None:
    """Eight callers at once, and one whose run is cancelled."""
    agent = production.agent
    callers = [in_background(partial(agent.invoke, ECHO, {"text": str(n)})) for n in range(8)]
    for each in callers:
        assert each.answer().status == 200, each.answer()
        assert agent.check_pair(each.answer().call_id)["outcome"] == "succeeded"

    waiting = in_background(lambda: agent.invoke("sample.tools.keeps_a_secret", {"text": "x", "seconds": 30}))
    production.until_it_runs()
    running = "SELECT id::text FROM invocations_invocation WHERE state = 'running'"
    with psycopg.connect(production.database_url) as connection:
        [(call,)] = connection.execute(running).fetchall()
    address = f"{production.url}/api/v1/invocations/{encode('inv', UUID(call))}"
    assert request("DELETE", address, headers={"Authorization": f"Bearer {agent.key}"}).status in (200, 202)
    assert waiting.answer().json()["call"]["state"] == "cancelled", waiting.answer()


@pytest.mark.req("TOOLS-18", "TOOLS-24", "OPS-6")
def test_while_redis_is_away_calls_go_on_and_afterwards_too(production: Production) -> None:
    worker = production.use_worker()
    production.redis.stop()
    try:
        check_calls_and_cancellation(production)
        ready = request("GET", f"{production.url}/readyz")
    finally:
        production.redis.start()

    assert ready.status == 200, ready
    assert ready.json()["checks"]["broker"] == "does not answer; PostgreSQL wakes the workers"
    check_calls_and_cancellation(production)
    assert worker.runs, worker.said()


@pytest.mark.req("OPS-6")
def test_a_hub_without_redis_by_choice_takes_calls(tmp_path: Path) -> None:
    with production_at(tmp_path, TOOLHUB_REDIS_URL="") as hub:
        check_calls_and_cancellation(hub)
        later = hub.agent.begin(ECHO, {"text": "later"})
        until(lambda: hub.agent.state(later) == "succeeded", "a call that nobody waits for runs too")


@pytest.mark.req("CARD-5", "TOOLS-18", "TOOLS-24")
def test_a_broker_that_restarts_takes_no_call_and_no_worker_with_it(production: Production) -> None:
    worker = production.use_worker()
    waiting = in_background(lambda: production.agent.invoke("sample.tools.keeps_a_secret", {"text": "x", "seconds": 3}))
    production.until_it_runs()

    production.redis.stop()
    production.redis.start()

    assert waiting.answer().status == 200, waiting.answer()
    production.agent.check_pair(waiting.answer().call_id)
    until(lambda: production.agent.invoke(ECHO, {"text": "again"}).status == 200, "calls work again")
    assert worker.runs, worker.said()


@pytest.mark.req("TOOLS-24")
def test_without_the_database_everything_answers_503_and_afterwards_works_again(production: Production) -> None:
    production.use_worker()
    agent = production.agent
    with Person(production.url, "olivia", production.credentials.password("olivia")) as olivia:
        production.database.cut()
        try:
            answer = agent.invoke(ECHO, {"text": "x"})
            ready = request("GET", f"{production.url}/readyz")
            alive = request("GET", f"{production.url}/healthz")
            sign_in = request("GET", f"{production.url}/sign-in")
            status, page = olivia.open("/invocations")
        finally:
            production.database.mend()

        check_unavailable(answer, "EVIDENCE.UNAVAILABLE")
        assert (ready.status, alive.status) == (503, 200), ready
        assert int(ready.headers["retry-after"]) > 0
        assert (status, "<html" in page) == (503, True), page
        assert sign_in.status in (200, 503), sign_in
        until(lambda: answers(f"{production.url}/readyz"), "the hub is ready again")
        assert olivia.open("/invocations")[0] == 200
    until(lambda: agent.invoke(ECHO, {"text": "again"}).status == 200, "calls work again")


@pytest.mark.req("CARD-5", "TOOLS-18", "TOOLS-24")
def test_without_the_engine_a_call_fails_before_it_starts(production: Production, tmp_path: Path) -> None:
    production.use_worker(TOOLHUB_DOCKER_URL=f"unix://{tmp_path}/nobody-listens.sock")

    answer = production.agent.invoke(ECHO, {"text": "x"})

    check_unavailable(answer, "SANDBOX.START_FAILED")
    assert production.agent.check_pair(answer.call_id)["outcome"] == "failed"


def not_ready(url: str) -> dict[str, str]:
    """What a probe names, once it answers 503."""
    answer = request("GET", url)
    checks: dict[str, str] = answer.json()["checks"]
    return checks if answer.status == 503 else {}


def look(url: str, seen: set[int]) -> bool:
    """Keep the status of a probe; False once nobody answers."""
    try:
        seen.add(request("GET", url).status)
    except OSError:
        return False
    return True


@pytest.mark.req("CARD-5", "TOOLS-18")
@pytest.mark.parametrize("how", ["signal", "remote control"])
def test_a_worker_that_is_asked_to_stop_says_so_and_finishes_what_it_has(production: Production, how: str) -> None:
    address = f"127.0.0.1:{free_port()}"
    worker = production.use_worker(TOOLHUB_PROBE_BIND=address)
    worker.wait_for(lambda: answers(f"http://{address}/readyz"), "its probes answer")
    waiting = in_background(lambda: production.agent.invoke("sample.tools.keeps_a_secret", {"text": "x", "seconds": 6}))
    production.until_it_runs()

    if how == "signal":
        worker.send(signal.SIGTERM)
    else:
        run(python("-c", REMOTE_SHUTDOWN), production.env)

    wrong = worker.wait_for(lambda: not_ready(f"http://{address}/readyz"), "it is not ready any more")
    assert {name: state for name, state in wrong.items() if state != "ok"} == {"process": "ending"}
    alive: set[int] = set()
    until(lambda: not look(f"http://{address}/healthz", alive), "its probes end with it")
    assert worker.ended() == 0
    assert alive == {200}
    assert waiting.answer().status == 200, waiting.answer()
