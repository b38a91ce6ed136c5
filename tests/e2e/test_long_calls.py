"""Long calls: does a call that was promised survive the loss of everything but the database, and is its caller told?"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.e2e.console import Person
from tests.e2e.processes import until
from tests.e2e.production import Production, production_at
from tests.support.http_server import Server, local_server

if TYPE_CHECKING:
    from collections.abc import Iterator

ECHO = "sample.tools.echo"
SLOW = "sample.tools.keeps_a_secret"


@pytest.fixture(scope="module")
def production(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Production]:
    folder = tmp_path_factory.mktemp("long")
    with production_at(folder, TOOLHUB_OUTBOUND_NETWORKS="127.0.0.0/8", TOOLHUB_QUEUE_WAIT_S="2") as hub:
        yield hub


@pytest.fixture
def receiver() -> Iterator[Server]:
    with local_server() as found:
        yield found


def make_endpoint(production: Production, name: str, url: str) -> str:
    """As an operator does in the console; returns the secret."""
    call_id = production.agent.invoke(ECHO, {"text": "x"}).call_id
    agent = production.agent.facts(call_id)[0]["actor"]["id"]
    with Person(production.url, "olivia", production.credentials.password("olivia")) as olivia:
        new = f"/agents/{agent}/callbacks/new"
        shown = olivia.send(new, new, name=name, url=url)
    found = re.search(r"whsec_[A-Za-z0-9+/=]+", shown)
    assert found, shown
    return found[0]


class Stream:
    """The events of one call, as a client without a library reads them."""

    def __init__(self, production: Production, call_id: str, last: str = "") -> None:
        parts = urlsplit(production.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        headers = {"Authorization": f"Bearer {production.agent.key}", "Accept": "text/event-stream"}
        headers |= {"Last-Event-ID": last} if last else {}
        self._connection.request("GET", f"/api/v1/invocations/{call_id}/events", headers=headers)
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        fields: dict[str, str] = {}
        for line in self._response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                yield fields | {"data": json.loads(fields["data"])}
                fields = {}

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def is_signed(heard: Any, secret: str) -> bool:
    signed = b".".join([heard.headers["webhook-id"].encode(), heard.headers["webhook-timestamp"].encode(), heard.body])
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return bool(
        heard.headers["webhook-signature"]
        == "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    )


@pytest.mark.req("TOOLS-32", "TOOLS-18", "CARD-5")
def test_a_promised_call_survives_a_restart_of_everything(production: Production, receiver: Server) -> None:
    agent, worker = production.agent, production.use_worker()
    secret = make_endpoint(production, "orders", f"{receiver.url}/hook")
    worker.kill()
    answer = agent.invoke(SLOW, {"text": "x", "seconds": 1}, {"Prefer": "respond-async"}, callback="orders")
    assert answer.status == 202, answer
    assert answer.headers["preference-applied"] == "respond-async"
    with closing(Stream(production, answer.call_id)) as stream:
        first = [next(iter(stream)), next(iter(stream))]
        assert production.web is not None
        production.web.kill()
        production.redis.stop()  # with all the messages in it
    assert [each["event"] for each in first] == ["state", "evidence"]
    production.redis.start()
    production.start_web()
    production.use_worker()

    with closing(Stream(production, answer.call_id, last=first[-1]["id"])) as again:
        rest = list(again)
    assert rest[-1]["event"] == "end"
    assert rest[-1]["data"]["data"] == {"kept": 1}
    kinds = [each["data"]["kind"] for each in [*first, *rest] if each["event"] == "evidence"]
    assert kinds == ["invocation.began", "invocation.ended"]
    assert agent.check_pair(answer.call_id)["outcome"] == "succeeded"
    until(lambda: receiver.heard, "the callback arrived")
    body = json.loads(receiver.heard[0].body)
    assert body["data"]["call_id"] == answer.call_id
    assert is_signed(receiver.heard[0], secret)
    attempts = "SELECT count(*) FROM invocations_attempt a JOIN invocations_invocation i ON i.id = a.invocation_id WHERE i.tool = %s"
    assert production.count(attempts, SLOW) == 1


@pytest.mark.req("TOOLS-32")
def test_a_message_that_did_not_arrive_is_sent_by_whoever_is_there_later(
    production: Production, receiver: Server
) -> None:
    make_endpoint(production, "later", f"{receiver.url}/later")
    receiver.status = 503
    worker = production.use_worker()
    answer = production.agent.invoke(ECHO, {"text": "x"}, callback="later")
    assert answer.status == 200, answer
    tried = "SELECT count(*) FROM invocations_callbackattempt WHERE status = 503"
    until(
        lambda: production.count(tried) >= 1, "it was tried"
    )  # who dies before that is written has it tried again later
    worker.kill()
    receiver.status = 200
    production.use_worker()

    until(lambda: len(receiver.heard) > 1, "it was tried again")

    assert len({heard.headers["webhook-id"] for heard in receiver.heard}) == 1
    delivered = "SELECT count(*) FROM invocations_callbackdelivery WHERE delivered_at IS NOT NULL"
    until(lambda: production.count(delivered) >= 1, "it is known to have arrived")


@pytest.mark.req("TOOLS-24", "TOOLS-32", "OPS-6")
def test_while_redis_is_away_a_call_that_nobody_waits_for_is_run_too(production: Production) -> None:
    production.use_worker()
    production.redis.stop()
    try:
        answer = production.agent.invoke(ECHO, {"text": "x"}, {"Prefer": "respond-async"})
        assert answer.status == 202, answer
        until(lambda: production.agent.state(answer.call_id) == "succeeded", "it was run without the broker")
    finally:
        production.redis.start()

    production.agent.check_pair(answer.call_id)
