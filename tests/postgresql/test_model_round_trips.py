"""Model round trips: how often is the database asked before a model is?"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from invocations.model_calls import model_runs
from kernel.database.postgresql.base import DatabaseWrapper
from kernel.database.postgresql.pipeline import StatementPipeline
from tests.integration.invocations.model_calls.conftest import bench, connect, model
from tests.integration.invocations.model_calls.test_streamed_answers import open_stream, tell
from tests.support.model_calls import until
from tests.support.scripted_models import ScriptedChat

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from kernel.http.deferred_responses import Handler
    from llm.answers import ChatDelta
    from llm.requests import ChatRequest
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

__all__ = ["bench", "connect", "model"]
pytestmark = pytest.mark.django_db(transaction=True)
# The key; the decision with the subject key; the provider with all that goes with it; Begin and budgets, with their commit.
AT_MOST = 4


@dataclass
class NotingChat(ScriptedChat):
    """Notes how often the database had been asked when it was."""

    counts: dict[str, int] = field(default_factory=dict)
    noted: dict[str, int] = field(default_factory=dict)

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.noted = dict(self.counts)
        async with aclosing(super().open_stream(request)) as deltas:
            async for delta in deltas:
                yield delta


@pytest.mark.req("LLM-13")
def test_a_model_is_asked_after_few_statements_that_are_all_prepared(
    caller: Caller, model: Tool, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to the database and back, and each statement that is planned anew, is time until the first token."""
    counts = {"prepared": 0, "planned": 0}
    chat = bench.chat = NotingChat(bench.scripts, counts=counts)
    run, create = StatementPipeline.run, DatabaseWrapper.create_cursor

    def counted_run(self: StatementPipeline, *arguments: Any) -> Any:
        counts["prepared"] += 1
        return run(self, *arguments)

    def counted_cursor(self: DatabaseWrapper, name: str | None = None) -> Any:
        counts["planned"] += 1
        return create(self, name)

    monkeypatch.setattr(StatementPipeline, "run", counted_run)
    monkeypatch.setattr(DatabaseWrapper, "create_cursor", counted_cursor)

    async def story(handler: Handler) -> None:
        for _ in range(2):  # the first finds out what is kept
            counts.update(prepared=0, planned=0)
            stream = open_stream(handler, caller)
            await stream.send()
            await stream.read()
            await until(lambda: not model_runs._whole_runs)

    tell(story, threads=1)

    assert chat.noted["planned"] == 0
    assert 0 < chat.noted["prepared"] <= AT_MOST
    assert counts["planned"] == 0, "the End asks with prepared statements as well"
