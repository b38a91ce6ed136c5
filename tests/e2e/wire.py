"""The hub from outside: what does somebody outside the hub see: an agent over REST, an engine's user, a reader of the database?"""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAIRS = (["invocation.began", "invocation.ended"], ["dry_run.began", "dry_run.ended"])
ANSWER_S = 120.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def reason(self) -> str:
        return str((self.json()["error"] or {}).get("reason", ""))

    @property
    def call_id(self) -> str:
        return str(self.json()["call"]["call_id"])

    def __str__(self) -> str:
        return f"{self.status} {self.headers}\n{self.body.decode(errors='replace')[:4000]}"


def request(method: str, url: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """One request on a connection of its own. Header names are in lower case. Redirects are answers."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_S)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        data = None if body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, data, given | (headers or {}))
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()


def answers(url: str) -> bool:
    """Whether somebody answers there with 200."""
    try:
        return request("GET", url).status == 200
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Agent:
    """A program that calls tools."""

    url: str
    key: str
    name: str = "shopping-assistant"

    def get(self, path: str) -> Answer:
        return request("GET", f"{self.url}/api/v1{path}", headers={"Authorization": f"Bearer {self.key}"})

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        given = {"Authorization": f"Bearer {self.key}"} | headers
        return request("POST", f"{self.url}/api/v1{path}", body, given)

    def invoke(self, tool: str, arguments: Any, headers: dict[str, str] | None = None, **envelope: Any) -> Answer:
        body = {
            "request_id": f"e2e-{uuid.uuid4().hex}",
            "actor": {"type": "agent", "id": self.name},
            "arguments": arguments,
            **envelope,
        }
        return self.post(f"/tools/{tool}/invoke", body, **(headers or {}))

    def begin(self, tool: str, arguments: Any) -> str:
        """Make a call without waiting for it; returns its id."""
        answer = self.invoke(tool, arguments, {"Prefer": "respond-async"})
        assert answer.status == 202, answer
        return answer.call_id

    def state(self, call_id: str) -> str:
        answer = self.get(f"/invocations/{call_id}")
        assert answer.status in (200, 202), answer
        return str(answer.json()["call"]["state"])

    def facts(self, call_id: str) -> list[dict[str, Any]]:
        """The leaves about a call, in order."""
        answer = self.get(f"/evidence/invocations/{call_id}")
        assert answer.status == 200, answer
        return [{"kind": fact["kind"]} | json.loads(fact["leaf"]) for fact in answer.json()["data"]["facts"]]

    def check_pair(self, call_id: str) -> dict[str, Any]:
        """See that the call has exactly one Begin and one End; returns the End."""
        facts = self.facts(call_id)
        assert [fact["kind"] for fact in facts if fact["kind"] in {*PAIRS[0], *PAIRS[1]}] in PAIRS, facts
        return facts[-1]


@dataclass(slots=True)
class Waiting:
    """A call that another thread waits for."""

    thread: threading.Thread
    answers: list[Answer] = field(default_factory=list)
    errors: list[OSError | http.client.HTTPException] = field(default_factory=list)

    def answer(self) -> Answer:
        self.thread.join(ANSWER_S)
        assert self.answers, f"The caller got no answer: {self.errors}"
        return self.answers[0]


def in_background(call: Callable[[], Answer]) -> Waiting:
    """Make a call as somebody who waits, while the test does something else."""

    def make() -> None:
        try:
            waiting.answers.append(call())
        except (OSError, http.client.HTTPException) as error:
            waiting.errors.append(error)

    waiting = Waiting(threading.Thread(target=make, name="caller"))
    waiting.thread.start()
    return waiting


def boxes(instance: str) -> list[str]:
    """The containers of one hub. Some stand ready for calls to come: that there are any says nothing of a call.

    One that was never started runs nothing; of a hub that was killed it stays until a hub of that name starts again.
    """
    begun = [part for state in ("running", "exited", "removing", "dead") for part in ("--filter", f"status={state}")]
    return _containers(instance, *begun)


def describe_boxes(found: Sequence[str]) -> str:
    """What the engine says of these containers and of who runs in them, for a message."""
    words = [["docker", "inspect", "--format", "{{.Name}} {{json .State}} {{json .Config.Labels}}", *found]]
    words += [["docker", "top", box] for box in found]
    asked = (subprocess.run(each, capture_output=True, text=True, timeout=60, check=False) for each in words)
    return "\n".join(each.stdout + each.stderr for each in asked)


def remove_boxes(instance: str) -> None:
    """What a hub that was killed, and starts no more, has left on the engine."""
    if left := _containers(instance):
        subprocess.run(["docker", "rm", "-f", *left], capture_output=True, timeout=60, check=False)


def _containers(instance: str, *filters: str) -> list[str]:
    words = ["docker", "ps", "-aq", "--filter", f"label=toolhub.instance={instance}", *filters]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.split()
