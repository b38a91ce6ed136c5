"""Answer streams: is a streamed answer the whole one, however it is cut, and is nothing of it used that broke off?"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.problems import Problem
from llm.answers import ChatAnswer, ChatDelta, FinishReason, ParameterWarning, Timestamps, ToolCallDelta
from llm.messages import ProviderState, Text
from llm.problems import ProviderAnswerUnreadable, StreamTruncated
from llm.streams import collect_answer, normalize_stream
from llm.usage import Usage
from unitools.calls import CallProblem
from unitools.dialects import ReadOptions

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

STOP = ChatDelta(finish_reason=FinishReason.STOP)
TEXT = "Größe 中 😀 \u2028 end"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("save", {"n": 1, "text": "é 中 😀"}),
    ("load", {"path": ["a", {"b": None}]}),
]


async def play(deltas: Iterable[ChatDelta]) -> AsyncGenerator[ChatDelta, None]:
    for each in deltas:
        yield each


def collect(deltas: Iterable[ChatDelta], reading: ReadOptions | None = None) -> ChatAnswer:
    return anyio.run(collect_answer, play(deltas), reading or ReadOptions())


def normalize(deltas: Iterable[ChatDelta], clock: Callable[[], float] = lambda: 0.0) -> list[ChatDelta]:
    async def run() -> list[ChatDelta]:
        return [each async for each in normalize_stream(play(deltas), clock=clock)]

    return anyio.run(run)


def cut_text(text: str, places: Sequence[int]) -> list[str]:
    at = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(at)]


def build_stream(
    text: str, calls: list[tuple[str, str]], places: Sequence[int], finish: FinishReason = FinishReason.STOP
) -> list[ChatDelta]:
    """The same answer, its text and each call cut at those places."""
    deltas = [ChatDelta(text=piece) for piece in cut_text(text, places)]
    for index, (name, arguments) in enumerate(calls):
        deltas.append(ChatDelta(tool_call=ToolCallDelta(index, call_id=f"c{index}")))
        deltas += [ChatDelta(tool_call=ToolCallDelta(index, name=piece)) for piece in cut_text(name, places)]
        deltas += [ChatDelta(tool_call=ToolCallDelta(index, arguments=piece)) for piece in cut_text(arguments, places)]
    return [*deltas, ChatDelta(finish_reason=finish, usage=Usage(5, 7))]


def as_text(calls: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    return [(name, json.dumps(arguments, ensure_ascii=False)) for name, arguments in calls]


names = st.text("abcdefgh_", min_size=1, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=8), values, max_size=4)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.mark.req("LLM-5", "LLM-3")
@given(
    text=texts,
    calls=st.lists(st.tuples(names, arguments), max_size=3),
    places=st.lists(st.integers(0, 200), max_size=12),
    finish=st.sampled_from(FinishReason),
)
def test_an_answer_is_the_same_however_it_was_cut(
    text: str, calls: list[tuple[str, Any]], places: list[int], finish: FinishReason
) -> None:
    whole = collect(build_stream(text, as_text(calls), [], finish))
    pieces = build_stream(text, as_text(calls), places, finish)

    assert collect(pieces) == whole
    assert whole.text == text
    assert [call.name for call in whole.proposals] == [name for name, _ in calls]
    if finish.is_whole:
        assert [call.arguments for call in whole.proposals] == [given for _, given in calls]


@pytest.mark.req("LLM-5")
@given(
    text=texts,
    calls=st.lists(st.tuples(names, arguments), max_size=3),
    places=st.lists(st.integers(0, 200), max_size=12),
    finish=st.sampled_from(FinishReason),
)
def test_a_stream_in_the_form_of_the_layer_makes_the_same_answer_and_ends_as_it_does(
    text: str, calls: list[tuple[str, Any]], places: list[int], finish: FinishReason
) -> None:
    pieces = build_stream(text, as_text(calls), places, finish)
    normal = normalize(pieces)

    answer = collect(normal)
    assert answer == collect(pieces)
    assert [each.finish_reason for each in normal if each.finish_reason] == [answer.finish_reason]
    assert normal[-1].finish_reason is answer.finish_reason
    assert "".join(each.text for each in normal) == answer.text
    assert normalize(normal)[-1] == normal[-1]


@pytest.mark.req("LLM-5")
@given(pieces=st.permutations([0, 0, 0, 1, 1, 1]))
def test_pieces_of_parallel_calls_may_come_between_each_other(pieces: list[int]) -> None:
    parts = {
        index: iter(
            [
                ToolCallDelta(index, call_id=f"c{index}", name=name),
                *(ToolCallDelta(index, arguments=part) for part in cut_text(json.dumps(given), [4])),
            ]
        )
        for index, (name, given) in enumerate(CALLS)
    }

    answer = collect([*(ChatDelta(tool_call=next(parts[index])) for index in pieces), STOP])

    assert [(call.id, call.name, call.arguments) for call in answer.proposals] == [
        ("c0", *CALLS[0]),
        ("c1", *CALLS[1]),
    ]


@pytest.mark.req("LLM-5")
@given(end=st.integers(0, 60), text=st.just(TEXT))
def test_a_stream_without_its_end_is_no_answer(end: int, text: str) -> None:
    pieces = build_stream(text, as_text(CALLS), list(range(0, 60, 3)))
    cut = pieces[: min(end, len(pieces) - 1)]

    with pytest.raises(StreamTruncated):
        collect(cut)
    with pytest.raises(StreamTruncated):
        normalize(cut)


@pytest.mark.req("LLM-3", "LLM-5")
@pytest.mark.parametrize("finish", [FinishReason.LENGTH, FinishReason.SAFETY, FinishReason.OTHER])
@given(end=st.integers(0, 60))
def test_no_proposal_of_an_answer_that_was_cut_can_be_used(finish: FinishReason, end: int) -> None:
    """Not even one whose arguments look complete: `{"amount": 10` and `{"amount": 100}` begin alike."""
    name, text = as_text(CALLS)[0]
    piece = ToolCallDelta(0, call_id="c0", name=name, arguments=text[:end])

    (call,) = collect([ChatDelta(tool_call=piece), ChatDelta(finish_reason=finish)]).proposals

    assert (call.arguments, call.problem) == (None, CallProblem.TRUNCATED)


@pytest.mark.req("LLM-3", "LLM-5")
@given(end=st.integers(1, 100))
def test_arguments_that_are_not_closed_are_cut_whatever_the_provider_says(end: int) -> None:
    name, text = as_text(CALLS)[0]
    piece = ToolCallDelta(0, call_id="c0", name=name, arguments=text[: min(end, len(text) - 1)])

    (call,) = collect([ChatDelta(tool_call=piece), ChatDelta(finish_reason=FinishReason.TOOL)]).proposals

    assert (call.arguments, call.problem) == (None, CallProblem.TRUNCATED)


CALL = ChatDelta(tool_call=ToolCallDelta(0, call_id="c0", name="load", arguments="{}"))


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    ("reported", "with_call", "finish"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool"),  # Responses, Gemini
        ("tool", True, "tool"),
        ("tool", False, "other"),  # something was lost
        ("length", False, "length"),
        ("length", True, "length"),
        ("safety", True, "safety"),
        ("other", False, "other"),
        ("other", True, "other"),
    ],
)
def test_an_answer_ends_as_its_content_says(reported: str, with_call: bool, finish: str) -> None:
    pieces = [*([CALL] if with_call else []), ChatDelta(finish_reason=FinishReason(reported))]

    assert collect(pieces).finish_reason == finish
    assert normalize(pieces)[-1].finish_reason == finish


@pytest.mark.req("LLM-5")
@pytest.mark.parametrize(
    "pieces",
    [
        [STOP, STOP],
        [STOP, ChatDelta(text="more")],
        [STOP, CALL],
        [ChatDelta(model="a"), ChatDelta(model="b"), STOP],
        [CALL, ChatDelta(tool_call=ToolCallDelta(0, call_id="other")), STOP],
        [ChatDelta(tool_call=ToolCallDelta(0, name="n" * 513)), STOP],
        [*(ChatDelta(tool_call=ToolCallDelta(n, name="n")) for n in range(1001)), STOP],
        [*([ChatDelta(text="x" * 1024 * 1024)] * 9), STOP],
    ],
    ids=["two ends", "text behind", "call behind", "two models", "two ids", "long name", "many calls", "too large"],
)
def test_a_stream_that_contradicts_itself_or_is_too_large_is_no_answer(pieces: list[ChatDelta]) -> None:
    with pytest.raises(ProviderAnswerUnreadable):
        collect(pieces)
    with pytest.raises(ProviderAnswerUnreadable):
        normalize(pieces)


@pytest.mark.req("LLM-5", "LLM-7")
def test_what_is_counted_behind_the_end_is_a_part_of_the_answer() -> None:
    late = [ChatDelta(text="Hi"), STOP, ChatDelta(usage=Usage(10, 2, cached_tokens=4)), ChatDelta(model="gpt-5")]

    normal = normalize(late)

    assert normal[-1].usage == Usage(10, 2, cached_tokens=4)
    assert normal[-1].finish_reason is FinishReason.STOP
    assert (collect(normal).usage, collect(normal).model) == (Usage(10, 2, cached_tokens=4), "gpt-5")


@pytest.mark.req("LLM-5", "LLM-7")
def test_usage_is_what_was_used_so_far_and_is_not_added_up() -> None:
    pieces = [ChatDelta(text="a", usage=Usage(10, 1)), ChatDelta(text="b", usage=Usage(10, 2)), STOP]

    assert collect(pieces).usage == Usage(10, 2)
    assert collect([ChatDelta(text="a"), STOP]).usage is None


@pytest.mark.req("LLM-5")
def test_an_answer_says_when_its_first_token_came_and_when_it_ended() -> None:
    moments = iter([100.0, 100.01, 100.08, 100.2, 100.5])
    pieces = [ChatDelta(model="gpt-5"), ChatDelta(text="a"), ChatDelta(text="b"), STOP]

    normal = normalize(pieces, lambda: next(moments))

    assert [each.elapsed_ms for each in normal] == [10, 80, 200, 500]
    assert collect(normal).timestamps == Timestamps(first_token_ms=80, finished_ms=500)


@pytest.mark.req("LLM-2", "LLM-3")
def test_an_answer_goes_on_as_a_message_with_what_its_provider_wants_back() -> None:
    state = ProviderState("gemini", {"signature": "x"})
    meta = ChatDelta(tool_call=ToolCallDelta(0, meta={"thought_signature": "y"}))

    answer = collect([ChatDelta(text="Hi", provider_state=state), CALL, meta, STOP])
    message = answer.build_message()

    assert (message.segments, message.provider_state) == ((Text("Hi"),), state)
    assert message.proposals == answer.proposals
    assert message.proposals[0].meta == {"thought_signature": "y"}


@pytest.mark.req("LLM-3")
def test_arguments_with_a_slip_are_repaired_and_never_for_a_tool_that_can_destroy_things() -> None:
    slip = ChatDelta(tool_call=ToolCallDelta(0, call_id="c", name="drop", arguments="{'all': True}"))

    (mended,) = collect([slip, STOP]).proposals
    (exact,) = collect([slip, STOP], ReadOptions(destructive=frozenset({"drop"}))).proposals

    assert (mended.arguments, mended.repaired) == ({"all": True}, True)
    assert (exact.arguments, exact.problem) == (None, CallProblem.INVALID_JSON)


@pytest.mark.req("LLM-3")
def test_the_second_of_two_calls_with_one_id_is_told_apart_and_not_used() -> None:
    assert CALL.tool_call is not None
    again = ChatDelta(tool_call=replace(CALL.tool_call, index=1))

    first, second = collect([CALL, again, STOP]).proposals

    assert (first.problem, second.problem) == (None, CallProblem.DUPLICATE_ID)
    assert first.id != second.id


@pytest.mark.req("LLM-5")
def test_whoever_leaves_a_stream_closes_that_of_the_provider() -> None:
    closed: list[bool] = []

    async def endless() -> AsyncGenerator[ChatDelta, None]:
        try:
            while True:
                yield ChatDelta(text="x")
        finally:
            closed.append(True)

    async def leave() -> None:
        stream = normalize_stream(endless())
        async for _ in stream:
            break
        assert closed == []
        await stream.aclose()
        assert closed == [True]

    anyio.run(leave)


@pytest.mark.req("LLM-9")
def test_a_problem_in_the_middle_of_a_stream_is_told_as_it_is() -> None:
    class Fails(Problem):
        """It fails."""

    async def failing() -> AsyncGenerator[ChatDelta, None]:
        yield ChatDelta(text="a")
        raise Fails

    async def run() -> list[ChatDelta]:
        seen = []
        with pytest.raises(Fails):
            async for each in normalize_stream(failing()):
                seen.append(each)  # noqa: PERF401 - what came before counts
        return seen

    assert [each.text for each in anyio.run(run)] == ["a"]


def test_warnings_come_before_anything_else_and_stay_with_the_answer() -> None:
    warning = ParameterWarning("/seed", "It was left out.")

    async def run() -> list[ChatDelta]:
        return [each async for each in normalize_stream(play([ChatDelta(text="a"), STOP]), warnings=(warning,))]

    normal = anyio.run(run)
    assert normal[0] == ChatDelta(warnings=(warning,))
    assert collect(normal).warnings == (warning,)
