"""Canary words: is a word of a prompt, or of an answer, anywhere but in sealed values?"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from django.apps import apps
from django.db import connection
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from access.roles import Role
from evidence.packed_leaves import unpack_leaf
from invocations.metrics import model_metrics
from invocations.model_calls import run_spans
from invocations.models import Invocation
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.usage import Usage
from tests.conftest import make_person
from tests.support.erasures import cells, forget, opened
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.model_calls import MODEL, ask, say
from tests.support.scripted_models import text_answer
from tests.support.served_formats import BODIES, build_chat, build_contents, build_texts, find_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
ASKED, ANSWERED, PROPOSED, BROKEN = "quokkaasked", "quokkaanswered", "quokkaproposed", "quokkabroken"
WORDS = (ASKED, ANSWERED, PROPOSED, BROKEN)
HIDDEN = "quokkahidden@example.org"


def iter_stored_texts() -> Iterator[tuple[str, str]]:
    """Every column of every row, as text, by its table; of bytes what they are in plain, of leaves what they say."""
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT * FROM "{table}"')
            for row in cursor.fetchall():
                for value in row:
                    is_binary = isinstance(value, bytes | bytearray | memoryview)
                    plain = unpack_leaf(bytes(value)) if is_binary else str(value).encode()
                    yield table, plain.decode("utf-8", "replace")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(run_spans, "tracer", provider.get_tracer("test"))
    return exporter


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    reader = InMemoryMetricReader()
    instruments = model_metrics._ModelInstruments(MeterProvider([reader]).get_meter("test"))
    monkeypatch.setattr(model_metrics, "get_model_instruments", lambda: instruments)
    return reader


@pytest.mark.req("LLM-11")
def test_no_word_of_a_prompt_or_an_answer_is_in_the_database_the_logs_the_traces_or_the_metrics(
    caller: Caller,
    model: Tool,
    bench: ProviderBench,
    spans: InMemorySpanExporter,
    metrics: InMemoryMetricReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    proposal = ToolCallDelta(0, "call_1", "sample.tools.echo", f'{{"text": "{PROPOSED}"}}')
    bench.scripts = [
        (
            ChatDelta(text=f"The answer: {ANSWERED}", model="script-001"),
            ChatDelta(tool_call=proposal),
            ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(7, 9)),
        ),
        (ChatDelta(text=f"Half of {BROKEN}"),),
    ]

    with caplog.at_level(logging.DEBUG):
        said = [ask(caller, say(f"The question: {ASKED}")) for _ in range(2)]

    assert [each.status_code for each in said] == [200, 502]
    assert ANSWERED in said[0].content.decode()
    assert PROPOSED in said[0].content.decode()
    stored = list(iter_stored_texts())
    assert "evidence_fact" in {table for table, text in stored if MODEL in text}
    assert [table for table, text in stored if any(word in text for word in WORDS)] == []
    assert Invocation.objects.count() == 2
    assert not any(word in caplog.text for word in WORDS)
    told = "".join(each.to_json() for each in spans.get_finished_spans())
    assert '"gen_ai.usage.input_tokens": 7' in told
    assert not any(word in told for word in WORDS)
    counted: Any = metrics.get_metrics_data()
    assert "gen_ai.client.token.usage" in counted.to_json()
    assert not any(word in counted.to_json() for word in WORDS)


@pytest.mark.req("LLM-11")
def test_after_sealing_the_words_are_in_sealed_values_alone_and_after_an_erasure_of_the_person_nowhere(
    caller: Caller, tenant: Tenant, model: Tool, bench: ProviderBench, caplog: pytest.LogCaptureFixture
) -> None:
    owner = make_person(tenant, "olga", Role.OWNER)
    proposal = ToolCallDelta(0, "call_1", "sample.tools.echo", f'{{"text": "{PROPOSED}"}}')
    end = ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(7, 9))
    bench.scripts = [
        (ChatDelta(text=ANSWERED), ChatDelta(tool_call=proposal), end),
        (ChatDelta(text=f"Half of {BROKEN}"),),
    ]

    with caplog.at_level(logging.DEBUG), signing_with():
        said = [ask(caller, say(f"{ASKED} of {HIDDEN}"), user_id="person-7") for _ in range(2)]
        seal_everything()
        sealed = opened()
        kept = [word for word in (*WORDS, HIDDEN) if any(word in each for each in cells())]
        forget("person-7", by=owner.by)
        seal_everything()

    assert [each.status_code for each in said] == [200, 502]
    assert [word in sealed for word in (ASKED, ANSWERED, PROPOSED)] == [True, True, True]
    assert kept == []
    assert HIDDEN not in repr(bench.requests)
    everything = "".join([*cells(), opened(), *(text for _, text in iter_stored_texts()), caplog.text])
    assert [word for word in (*WORDS, HIDDEN) if word in everything] == []


PERSON = {"user": "person-7"}


def choose_word(name: str) -> str:
    """The word of a door, of which none is the beginning of another."""
    return f"{ASKED}-{name}-"


# A body for each door, by the name of its route, with a word of its own in what is asked; all but some name the person.
DOORS: dict[str, dict[str, Any]] = {
    "served_chat_completions": build_chat(choose_word("served_chat_completions"), stream=True, **PERSON),
    "served_messages": build_chat(
        choose_word("served_messages"), stream=True, max_tokens=9, metadata={"user_id": "person-7"}
    ),
    "served_responses": {"model": MODEL, "input": choose_word("served_responses"), "stream": True, **PERSON},
    "served_embeddings": {"model": "model.script.vectors", "input": choose_word("served_embeddings"), **PERSON},
    "served_rerank": {"model": "model.script.ranker", "query": "x", "documents": [choose_word("served_rerank")]},
    "served_content": build_contents(choose_word("served_content"), hub={"user_id": "person-7"}),
    "served_content_stream": build_contents(choose_word("served_content_stream"), hub={"user_id": "person-7"}),
    "served_content_vector": {"content": {"parts": [{"text": choose_word("served_content_vector")}]}},
    "served_content_vectors": build_texts(choose_word("served_content_vectors")),
}
# Rankings and Google's vectors have no place for the person.
NAMELESS = ("served_rerank", "served_content_vector", "served_content_vectors")


@pytest.mark.req("LLM-11")
def test_whichever_door_it_came_by_a_word_is_in_sealed_values_alone(
    caller: Caller,
    tenant: Tenant,
    connect: Callable[..., Tool],
    grant: Callable[..., Any],
    bench: ProviderBench,
    spans: InMemorySpanExporter,
    metrics: InMemoryMetricReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    owner = make_person(tenant, "olga", Role.OWNER)
    grant("model.*")
    for alias, operation in {"main": "chat", "vectors": "embed", "ranker": "rerank"}.items():
        connect(alias=alias, operation=operation)
    bench.scripts = [text_answer(f"The answer: {ANSWERED}")] * len(DOORS)

    with caplog.at_level(logging.DEBUG), signing_with():
        said = [caller.ask(find_address(name), body) for name, body in DOORS.items()]
        own = ask(caller, say(choose_word("own")), user_id="person-7", headers={"Accept": "text/event-stream"})
        stored = list(iter_stored_texts())
        seal_everything()
        sealed = opened()
        kept = list(cells())
        forget("person-7", by=owner.by)
        seal_everything()

    assert [each.status_code for each in (*said, own)] == [200] * 10
    assert sum("quokka" in each.content.decode() for each in (*said, own)) == 6, "answers in words"
    assert {name.removesuffix("_v1") for name in BODIES} == set(DOORS)
    words = [choose_word(name) for name in (*DOORS, "own")]
    assert [word for word in words if word not in sealed] == []
    assert [table for table, text in stored if "quokka" in text] == []
    assert [each for each in kept if "quokka" in each] == []
    told = "".join(each.to_json() for each in spans.get_finished_spans())
    counted: Any = metrics.get_metrics_data()
    assert [told.count('"gen_ai.operation.name": '), "quokka" in told + counted.to_json() + caplog.text] == [10, False]
    left = "".join([*cells(), opened(), *(text for _, text in iter_stored_texts())])
    nameless = [choose_word(name) for name in NAMELESS]
    assert [word for word in (*words, ANSWERED) if word in left] == nameless
