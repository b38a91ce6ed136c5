"""Model interfaces: is what callers use the same for every provider, whatever one does?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm.answers import ChatAnswer, ChatDelta, FinishReason, RerankAnswer, ToolCallDelta
from llm.interfaces import ChatModel, EmbedModel, RerankModel
from llm.messages import Text, UserMessage
from llm.problems import ModelTimedOut, ProviderAnswerUnreadable, StreamTruncated
from llm.requests import ChatRequest, EmbedRequest, RerankRequest
from llm.streams import collect_answer
from llm.usage import Usage
from tests.support.scripted_models import ScriptedChat, ScriptedEmbedder, ScriptedRanker, text_answer
from unitools.calls import Annotations, CallProblem, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

HELLO = ChatRequest(model="main", messages=(UserMessage((Text("Hi"),)),))
STOP = ChatDelta(finish_reason=FinishReason.STOP)


@pytest.mark.req("LLM-5", "LLM-1")
@given(
    text=st.text(max_size=40),
    calls=st.lists(st.dictionaries(st.text("ab", max_size=3), st.integers(0, 9), max_size=2), max_size=3),
    finish=st.sampled_from(FinishReason),
)
def test_an_answer_as_a_whole_is_the_stream_put_together(
    text: str, calls: list[dict[str, int]], finish: FinishReason
) -> None:
    pieces = [
        ChatDelta(tool_call=ToolCallDelta(n, call_id=f"c{n}", name="load", arguments=str(given).replace("'", '"')))
        for n, given in enumerate(calls)
    ]
    model = ScriptedChat([(*text_answer(text)[:-1], *pieces, ChatDelta(finish_reason=finish))] * 2)

    async def both() -> tuple[ChatAnswer, ChatAnswer]:
        return await model.generate(HELLO), await collect_answer(model.stream(HELLO))

    whole, streamed = anyio.run(both)
    assert whole == streamed
    assert whole.text == text
    assert model.closed == 2


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize("interface", [ChatModel, EmbedModel, RerankModel])
def test_a_provider_cannot_replace_what_callers_use(interface: type) -> None:
    """mypy refuses it; here that the marks are there."""
    used = {"stream", "generate", "embed", "rerank"} & set(vars(interface))

    assert used
    assert all(vars(interface)[name].__final__ for name in used)
    with pytest.raises(TypeError):
        interface()


@pytest.mark.req("LLM-3")
def test_arguments_for_a_tool_that_can_destroy_things_are_not_repaired() -> None:
    tools = tuple(
        ToolSpec(name, "", {}, annotations=Annotations(destructive=name == "drop")) for name in ("drop", "load")
    )
    pieces = [
        ChatDelta(tool_call=ToolCallDelta(n, call_id=f"c{n}", name=name, arguments="{'all': 1}"))
        for n, name in enumerate(["drop", "load"])
    ]
    request = ChatRequest(model="main", messages=HELLO.messages, tools=tools)

    drop, load = anyio.run(ScriptedChat([(*pieces, STOP)]).generate, request).proposals

    assert (drop.arguments, drop.problem) == (None, CallProblem.INVALID_JSON)
    assert (load.arguments, load.repaired) == ({"all": 1}, True)


@pytest.mark.req("LLM-9")
@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ((ChatDelta(text="Hi"),), StreamTruncated),
        ((), StreamTruncated),
        ((STOP, STOP), ProviderAnswerUnreadable),
        ((ChatDelta(text="Hi"), ModelTimedOut()), ModelTimedOut),
    ],
)
def test_a_stream_that_fails_is_no_answer_and_is_closed(
    script: Sequence[ChatDelta | Exception], problem: type[Exception]
) -> None:
    model = ScriptedChat([tuple(script)])

    with pytest.raises(problem):
        anyio.run(model.generate, HELLO)
    assert model.closed == 1


@pytest.mark.req("LLM-6")
def test_vectors_come_in_the_order_of_the_items_and_of_length_one_where_that_is_wanted() -> None:
    model = ScriptedEmbedder(((3.0, 4.0), (0.0, 2.0), (0.0, 0.0)))
    as_they_come = EmbedRequest(model="e5", items=("a", "b", "c"), normalize=False)

    scaled = anyio.run(model.embed, EmbedRequest(model="e5", items=("a", "b", "c")))
    raw = anyio.run(model.embed, as_they_come)

    assert scaled.vectors == ((0.6, 0.8), (0.0, 1.0), (0.0, 0.0))
    assert raw.vectors == ((3.0, 4.0), (0.0, 2.0), (0.0, 0.0))
    assert (raw.dim, raw.dtype, raw.usage) == (2, "float32", Usage(3))


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize(
    "vectors",
    [((1.0,),), ((1.0,), (1.0,), (1.0,)), ((1.0,), (1.0, 2.0)), ((), ()), ((1.0,), (math.nan,)), ((1.0,), (math.inf,))],
)
def test_vectors_that_do_not_fit_their_items_are_no_answer(vectors: tuple[tuple[float, ...], ...]) -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        anyio.run(ScriptedEmbedder(vectors).embed, EmbedRequest(model="e5", items=("a", "b")))


@pytest.mark.req("LLM-6")
def test_candidates_are_ordered_by_their_scores_and_of_two_with_one_score_the_earlier_is_first() -> None:
    request = RerankRequest(model="rank", query="q", candidates=("a", "b", "c", "d"))

    answer = anyio.run(ScriptedRanker((0.1, 0.9, 0.5, 0.9)).rerank, request)

    assert answer == RerankAnswer((0.1, 0.9, 0.5, 0.9), encoder="bi", usage=Usage(4))
    assert answer.ordering == (1, 3, 2, 0)


@pytest.mark.req("LLM-6")
@pytest.mark.parametrize("scores", [(), (0.1,), (0.1, 0.2, 0.3), (0.1, math.nan)])
def test_scores_that_do_not_fit_their_candidates_are_no_answer(scores: tuple[float, ...]) -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        anyio.run(ScriptedRanker(scores).rerank, RerankRequest(model="r", query="q", candidates=("a", "b")))
