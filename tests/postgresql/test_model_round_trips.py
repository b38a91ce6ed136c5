"""How often is the database asked before a model is?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from invocations.model_calls import model_runs, tenant_providers
from kernel.database.postgresql.base import DatabaseWrapper
from kernel.database.postgresql.pipeline import StatementPipeline
from kernel.http.deferred_responses import Handler
from llm.answers import ChatDelta, FinishReason
from tests.support.connected_models import SCRIPTED, connect_scripted_model
from tests.support.model_calls import OpenStream, ProviderBench, build_body, say, until
from tests.support.scripted_models import ScriptedChat

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from llm.requests import ChatRequest
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db(transaction=True)
# The key; the decision; the provider with all that goes with it; the subject key; Begin and budgets; the settings, and their secrets
# where there are any. The commit is one more.
AT_MOST = 6


class NotingChat(ScriptedChat):
    """Notes how often the database had been asked when it was."""

    def __init__(self, counts: dict[str, int]) -> None:
        super().__init__([])
        self.counts, self.noted = counts, {}  # type: ignore[var-annotated]

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        self.noted = dict(self.counts)
        yield ChatDelta(text="Hi")
        yield ChatDelta(finish_reason=FinishReason.STOP)


@pytest.mark.req("LLM-13")
def test_a_model_is_asked_after_few_statements_that_are_all_prepared(
    caller: Caller, operator: Person, grant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each way to the database and back, and each statement that is planned anew, is time until the first token."""
    bench = ProviderBench()
    monkeypatch.setitem(tenant_providers.KINDS, SCRIPTED, bench.connect)
    tenant_providers.forget_providers()
    connect_scripted_model(operator.by, unpriced="count")
    grant("model.*")
    counts = {"prepared": 0, "planned": 0}
    chat = bench.chat = NotingChat(counts)
    run, create = StatementPipeline.run, DatabaseWrapper.create_cursor

    def counted_run(self: StatementPipeline, *arguments: Any) -> Any:
        counts["prepared"] += 1
        return run(self, *arguments)

    def counted_cursor(self: DatabaseWrapper, name: str | None = None) -> Any:
        counts["planned"] += 1
        return create(self, name)

    async def ask_twice() -> None:
        handler = Handler(1)
        for _ in range(2):  # the first finds out what is kept
            counts.update(prepared=0, planned=0)
            stream = OpenStream(handler, caller, build_body(caller, say("Hello")))
            await stream.send()
            await stream.read()
            await until(lambda: not model_runs._whole_runs)
        await sync_to_async(connections.close_all)()

    monkeypatch.setattr(StatementPipeline, "run", counted_run)
    monkeypatch.setattr(DatabaseWrapper, "create_cursor", counted_cursor)
    asyncio.run(ask_twice())

    assert chat.noted["planned"] == 0
    assert 0 < chat.noted["prepared"] <= AT_MOST
