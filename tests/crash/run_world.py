"""A hub in which agents have runs made that a test interrupts, people who agree to what waits, and what must hold of every run."""

from __future__ import annotations

import contextlib
import http.client
import threading
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

from kernel.ids import decode, encode
from tests.crash.arrange import ASKS
from tests.crash.plan import KEYED
from tests.crash.run_arrange import MODEL
from tests.crash.scripted_model import PREFIX, Gate, ScriptedModel, serve_scripted_model
from tests.crash.world import World, world_at
from tests.e2e import processes
from tests.e2e.console import Person, read_token
from tests.e2e.processes import python, until
from tests.e2e.wire import ANSWER_S, Agent, Answer, Waiting, in_background

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.crash.run_plan import RunFate

AGENTS = 4  # of one no more than 200 calls may wait for people
LEASE_S = (
    9  # long enough that a process on a loaded machine keeps it: a question whose lease is over is asked once more
)
COMES_BACK_S, QUIET_S = 0.2, 5.0  # of a follower, also when nothing was told for so long
SIX_STEPS = (KEYED, ASKS, KEYED)  # three answers with a tool each, and then the last answer
ENDED_WITHIN_S = 300.0  # for a loaded machine; nothing is concluded from how long something took
GOING_ON = "SELECT count(*) FROM invocations_agentrun WHERE id = ANY(%s) AND state = 'running'"
ENDED_EARLY = """
    SELECT string_agg(stop_reason || ' ' || reason, ', ') FROM invocations_agentrun WHERE id = ANY(%s) AND state <> 'running'
"""
WAITING = """
    SELECT i.consent_id FROM invocations_invocation i JOIN invocations_agentrunstep s ON s.id = i.run_step_id
    WHERE s.run_id = ANY(%s) AND i.state = 'held' ORDER BY i.id
"""
OF_KEY = "SELECT id FROM invocations_agentrun WHERE idempotency_key = %s"
CALLS = """
    SELECT s.position, i.id, i.state FROM invocations_invocation i JOIN invocations_agentrunstep s ON s.id = i.run_step_id
    WHERE s.run_id = %s ORDER BY s.position, i.id
"""
FACTS = "SELECT kind FROM evidence_fact WHERE subject = %s AND kind LIKE 'agent_run.%%' ORDER BY id"


@dataclass(slots=True)
class AskedRun:
    """A run that an agent wants. It is sent with one key until the hub has accepted it, and then has an id."""

    name: str
    agent: Agent
    first_sent: Waiting | None = None
    id: str = ""

    @property
    def row(self) -> uuid.UUID:
        return decode("run", self.id)

    def send(self, agent: Agent) -> Answer:
        body = {
            "request_id": self.name,
            "actor": {"type": "agent", "id": "assistant"},
            "on_consent": "hold",
            "purpose": "What a test has ordered.",
            "model": MODEL,
            "arguments": {
                "messages": [{"role": "user", "segments": [{"type": "text", "text": f"{PREFIX}{self.name}"}]}],
                "tools": [f"sample.tools.{KEYED}", f"sample.tools.{ASKS}"],
                "max_tokens": 200,
            },
            "limits": {"steps": 10, "seconds": 3600},
        }
        return agent.post("/runs", body, **{"Idempotency-Key": self.name})


@dataclass(slots=True)
class Follower:
    """Follows a run from its beginning, and comes back with its cursor whenever the connection breaks."""

    run: AskedRun
    told: list[tuple[str, str]] = field(default_factory=list)  # id and kind of each event
    _left: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, first: Agent) -> None:
        self._thread = threading.Thread(target=self._follow, args=(first,), name="follower", daemon=True)
        self._thread.start()

    def _follow(self, agent: Agent) -> None:
        while not self._left.is_set() and not (self.told and self.told[-1][1] == "end"):
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._read(agent)
            agent = self.run.agent  # the process that it followed first may be no more
            self._left.wait(COMES_BACK_S)

    def _read(self, agent: Agent) -> None:
        parts = urlsplit(agent.url)
        with contextlib.closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=QUIET_S)) as line:
            headers = {"Authorization": f"Bearer {agent.key}"} | (
                {"Last-Event-ID": self.told[-1][0]} if self.told else {}
            )
            line.request("GET", f"/api/v1/runs/{self.run.id}/events", headers=headers)
            response = line.getresponse()
            if response.status != 200:
                return
            event: dict[str, str] = {}
            while raw := response.readline():
                name, _, value = raw.decode().rstrip("\r\n").partition(": ")
                if name:
                    event[name] = value
                elif "event" in event:
                    if event.get("id"):  # words of the model are passing news, without one
                        self.told.append((event["id"], event["event"]))
                    event = {}

    def check_told_once(self) -> None:
        """See that each event was told once, in order, and the end last."""
        thread = self._thread
        assert thread is not None
        until(lambda: not thread.is_alive(), "the end is told")
        *events, end = self.told
        numbers = [int(id) for id, _ in events]
        assert end[1] == "end", self.told
        assert numbers == list(range(1, len(numbers) + 1)), self.told

    def leave(self) -> None:
        self._left.set()


@dataclass(slots=True)
class RunWorld:
    """``keys``: of the agents, the first of which is that of all other tests of crashes."""

    world: World
    model: ScriptedModel
    keys: list[str]

    @property
    def agents(self) -> list[Agent]:
        return [Agent(self.world.hub.url, key) for key in self.keys]

    def begin(
        self, count: int, *, web: str = "", tools: Sequence[str] = SIX_STEPS, seconds: Mapping[int, float] | None = None
    ) -> list[AskedRun]:
        """Runs that are sent at once, each in a thread of its own; ``web`` is the address of the process that they go to first."""
        runs = []
        for number in range(count):
            agent = self.agents[number % len(self.keys)]
            run = AskedRun(f"{uuid.uuid4().hex}", agent)
            self.model.expect(run.name, tools, seconds or {})
            first = Agent(web or agent.url, agent.key)
            run.first_sent = in_background(lambda run=run, first=first: run.send(first))  # type: ignore[misc]
            runs.append(run)
        return runs

    def insist(self, runs: Sequence[AskedRun]) -> None:
        """Who got no answer asks again with the same key, as who has got one may."""
        for run in runs:
            assert run.first_sent is not None
            run.first_sent.thread.join(ANSWER_S)
            again = until(lambda run=run: self._sent(run), "the run is accepted")[0]  # type: ignore[misc]
            run.id = again.json()["data"]["run_id"]
            for first in run.first_sent.answers:
                assert first.status in (200, 202, 503), first
                assert first.status == 503 or first.json()["data"]["run_id"] == run.id

    def _sent(self, run: AskedRun) -> list[Answer]:
        answer = run.send(run.agent)
        if answer.status == 503:
            return []
        assert answer.status in (200, 202), answer
        return [answer]

    def keep_answers(self, turn: int) -> Gate:
        """From now on the model's answers of that turn are kept, until the gate is opened."""
        self.model.gate = Gate(turn)
        return self.model.gate

    # People.

    def sign_in(self, url: str = "") -> Person:
        return Person(url or self.world.hub.url, "olivia", self.world.hub.credentials.password("olivia"))

    def find_waiting(self, runs: Sequence[AskedRun]) -> list[str]:
        """The consents that runs wait for."""
        return [encode("cns", row[0]) for row in self.query(WAITING, [each.row for each in runs])]

    def await_held(self, runs: Sequence[AskedRun], *, within_s: float = ENDED_WITHIN_S) -> None:
        """Wait until each of them waits for a person; fails at once when one has ended instead."""
        rows = [each.row for each in runs]

        def look() -> bool:
            ended = self.query(ENDED_EARLY, rows)[0][0]
            assert not ended, f"Runs have ended that should wait for a person: {ended}"
            return len(self.find_waiting(runs)) == len(runs)

        until(look, "each run waits for a person", within_s=within_s)

    def agree(self, runs: Sequence[AskedRun], person: Person) -> int:
        """Somebody says yes to what the runs wait for now; to how many calls. While the database is away they have to come back."""
        fields, agreed = {"decision": "approve", "mode": "once", "reason": "It is what was ordered."}, 0
        for consent in self.find_waiting(runs):
            status, page = person.open(f"/consents/{consent}")
            if status == 200:
                sent = fields | {"csrfmiddlewaretoken": read_token(page)}
                status, page = person.open(f"/consents/{consent}/decision", sent)
            assert status in (200, 503), page
            agreed += status == 200
        return agreed

    def query(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Asked of the server itself, whatever happens to the line."""
        with psycopg.connect(self.world.hub.database_url) as connection:
            return connection.execute(text, list(values)).fetchall()

    # What must hold.

    def count_going(self, runs: Sequence[AskedRun]) -> int:
        return self.world.hub.count(GOING_ON, [run.row for run in runs])

    def await_ends(self, runs: Sequence[AskedRun], person: Person, *, within_s: float = ENDED_WITHIN_S) -> None:
        """Wait until no run goes on, while a person agrees to whatever waits."""

        def look() -> bool:
            self.agree(runs, person)
            return not self.count_going(runs)

        until(look, "all runs have ended", within_s=within_s)

    def check_fates(self, runs: Sequence[AskedRun], fate: RunFate, *, kills: int = 1) -> None:
        """See that each run has come to a right end, that what it did was done once, and that nothing is left of it."""
        until(lambda: not self.count_going(runs), "all runs have ended", within_s=ENDED_WITHIN_S)
        reasons, asked_more = [], 0
        for run in runs:
            assert self.query(OF_KEY, run.name) == [(run.row,)], "a run was lost, or is there twice"
            reason, more = self.check_run(run, kills=kills)
            reasons.append(reason)
            asked_more += more
        unknown = reasons.count("outcome_unknown")
        assert set(reasons) <= {"finished"} | ({"outcome_unknown"} if fate.some_unknown else set()), reasons
        assert unknown or not fate.some_unknown, reasons
        assert asked_more or not fate.asked_again, "no question was asked once more"
        self.world.check_rest()

    def check_run(self, run: AskedRun, *, kills: int) -> tuple[str, int]:
        """The reason why it has ended, and how often its model was asked more than once for one answer."""
        answer = run.agent.get(f"/runs/{run.id}")
        assert answer.status == 200, answer
        data = answer.json()["data"]
        told = f"{data['stop_reason']}: {data['steps']}"
        assert [row[0] for row in self.query(FACTS, run.id)] == ["agent_run.began", "agent_run.ended"], told
        calls: dict[int, list[str]] = {}
        for position, call, state in self.query(CALLS, run.row):
            calls.setdefault(position, []).append(state)
            run.agent.check_pair(encode("inv", call))
        more = 0
        for position, step in enumerate(data["steps"]):
            states = calls[position]
            if step["role"] == "model":
                more += self._check_question(run, step, states, told)
            else:
                self._check_tool(run, step, states, told)
        assert more <= kills, told
        unknown = any(
            step["role"] == "tool" and calls[at][-1] == "outcome_unknown" for at, step in enumerate(data["steps"])
        )
        assert (data["stop_reason"] == "outcome_unknown") is unknown, told
        if data["stop_reason"] == "finished":
            assert [step["state"] for step in data["steps"]] == ["succeeded"] * 7, told
            assert data["answer"]["text"] == "3 of 3", data["answer"]
        return data["stop_reason"], more

    def _check_question(self, run: AskedRun, step: dict[str, Any], states: list[str], told: str) -> int:
        """An answer is paid once, but for a question that was open when its process died: that is asked once more."""
        turn = run.name, step["turn"]
        assert len(states) == step["tries"] <= 2, told
        assert states[:-1] == ["outcome_unknown"] * (len(states) - 1), told
        assert self.model.asked[turn] <= step["tries"], told
        assert len(self.model.told[turn]) <= 1, "it was asked again with another conversation"
        return max(0, self.model.asked[turn] - 1)

    def _check_tool(self, run: AskedRun, step: dict[str, Any], states: list[str], told: str) -> None:
        assert len(states) == 1, told
        assert self.world.store.effects[f"{run.name}/{step['turn']}"] <= 1, "a tool has had its effect twice"
        if states == ["succeeded"]:
            assert self.world.store.effects[f"{run.name}/{step['turn']}"] == 1, told


@contextlib.contextmanager
def run_world_at(folder: Path, server: str = "", *, agents: int = AGENTS) -> Iterator[RunWorld]:
    with (
        world_at(folder, server=server, TOOLHUB_OUTBOUND_NETWORKS="127.0.0.0/8", TOOLHUB_LEASE_S=str(LEASE_S)) as world,
        serve_scripted_model(world.store.url) as model,
    ):
        keys = processes.run(python("-m", "tests.crash.run_arrange", model.url, str(agents)), world.hub.env).split()
        yield RunWorld(world, model, keys)
