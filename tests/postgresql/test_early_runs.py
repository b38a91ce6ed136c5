"""Early runs: may a call of a model be prepared while its Begin is committed, and nothing leaves before it is?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import OperationalError

from evidence.kinds import Kind
from evidence.models import Fact
from invocations.model_calls import model_runs
from invocations.model_calls.begin_gates import BeginGate
from invocations.model_calls.kept_providers import shelf
from invocations.model_calls.stream_places import places
from invocations.models import Invocation
from kernel.database.postgresql.pipeline import COMMIT, StatementPipeline
from tests.integration.invocations.model_calls.conftest import bench, connect, model
from tests.integration.invocations.model_calls.test_streamed_answers import open_stream, tell
from tests.support.calls import PAIR, kinds_of
from tests.support.model_calls import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.http.deferred_responses import Handler
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

__all__ = ["bench", "connect", "model"]
pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_S = 60.0


@pytest.fixture
def at_the_commit(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What is done once the run of a call waits at its gate, while COMMIT is on its way: it can fail it."""
    then: list[Callable[[], None]] = []
    waiting, arrived = list[BeginGate](), threading.Event()
    run, wait = StatementPipeline.run, BeginGate.wait

    async def noted_wait(self: BeginGate) -> None:
        waiting.append(self)
        if len(waiting) == 2:  # the run itself, and its request
            arrived.set()
        await wait(self)

    def slow_run(self: StatementPipeline, raw: Any, ready: Any, meanwhile: Any = None) -> Any:
        def work() -> None:
            meanwhile()
            assert arrived.wait(PATIENCE_S), "the run goes on to its gate by itself"
            for each in then:
                each()

        if meanwhile is not None:
            assert ready[-1][0] == COMMIT
        return run(self, raw, ready, meanwhile and work)

    monkeypatch.setattr(BeginGate, "wait", noted_wait)
    monkeypatch.setattr(StatementPipeline, "run", slow_run)
    return then


async def ask(handler: Handler, caller: Caller) -> int:
    stream = open_stream(handler, caller)
    await stream.send()
    await stream.read()
    await until(lambda: not model_runs._whole_runs)
    return stream.status


@pytest.mark.req("LLM-13", "LLM-11")
def test_a_run_is_prepared_while_the_begin_is_committed_and_asks_nobody_before(
    caller: Caller, model: Tool, bench: ProviderBench, at_the_commit: list[Callable[[], None]]
) -> None:
    asked = []
    at_the_commit.append(lambda: asked.append(len(bench.requests)))

    status = tell(lambda handler: ask(handler, caller), threads=1)

    assert (status, asked, len(bench.requests)) == (200, [0], 1)
    assert kinds_of(Invocation.objects.get()) == PAIR


@pytest.mark.req("LLM-13", "LLM-11")
def test_a_begin_that_is_not_committed_asks_nobody_and_leaves_nothing_behind(
    caller: Caller, model: Tool, bench: ProviderBench, at_the_commit: list[Callable[[], None]]
) -> None:
    def fail() -> None:
        raise OperationalError("The connection was lost.")

    at_the_commit.append(fail)

    status = tell(lambda handler: ask(handler, caller), threads=1)

    assert status >= 500
    assert bench.requests == []
    assert [kept.uses for kept in shelf._kept.values()] == [0]
    assert not places._taken
    ended = Fact.objects.filter(kind=Kind.INVOCATION_ENDED)
    assert not ended.exists()
