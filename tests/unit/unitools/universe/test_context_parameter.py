"""Context parameter: does a tool that takes the context tell how far it is, and is a change of it refused with what to write?"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest

from tests.support.sdk_calls import called, dispatched
from unitools import CallMessage, Context, ModelRetry, Status, Universe, mask
from unitools.runtime import DomainError


@pytest.mark.req("UNI-6")
def test_a_context_parameter_is_the_context_of_the_call_and_no_model_sees_it() -> None:
    u = Universe("acme.bank")

    @u.tool
    def balance(account: str, ctx: Context) -> str:
        return f"{account} of {ctx['uid']}"

    assert set(u.tools["balance"].spec.parameters["properties"]) == {"account"}
    assert called(u, "balance", {"uid": "u1"}, account="a").value == "a of u1"
    assert called(u, "balance", account="a", ctx={}).status is Status.INVALID_ARGUMENTS
    assert u.tools["balance"].injected_params == {}


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_tool_says_while_it_runs_is_told_to_the_caller(is_async: bool) -> None:
    u, said = Universe(), list[CallMessage]()

    def work(ctx: Context) -> str:
        ctx.progress(0.5, "Half")
        ctx.log("Nearly there.")
        return "done"

    async def work_async(ctx: Context) -> str:
        return work(ctx)

    u.tool("work")(work_async if is_async else work)
    results = dispatched(u, ("work", {}), on_message=said.append)

    assert [each.value for each in results] == ["done"]
    assert said == [CallMessage("id_0", "work", "Half", 0.5), CallMessage("id_0", "work", "Nearly there.")]


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize("is_async", [False, True])
def test_an_observer_that_fails_stops_no_tool_in_the_middle(is_async: bool, caplog: pytest.LogCaptureFixture) -> None:
    u, done = Universe(), list[str]()

    def pay(ctx: Context) -> str:
        done.append("taken")
        ctx.progress(0.5, "hunter2")
        ctx.log("hunter2")
        done.append("given")
        return "done"

    async def pay_async(ctx: Context) -> str:
        return pay(ctx)

    def observe(message: CallMessage) -> None:
        raise RuntimeError(message.message)

    u.tool("pay")(pay_async if is_async else pay)
    results = dispatched(u, ("pay", {}), on_message=observe)

    assert ([each.value for each in results], done) == (["done"], ["taken", "given"])
    assert caplog.text.count("on_message failed in tool pay: RuntimeError at test_context_parameter.py") == 2
    assert "hunter2" not in caplog.text


@pytest.mark.req("UNI-6")
def test_a_context_does_not_change_and_says_what_to_write() -> None:
    context: Any = Context({"user": "hunter2"})

    for change in (
        lambda: context.__setitem__("user", 1),
        lambda: context.__delitem__("user"),
        lambda: setattr(context, "user", 1),
        lambda: context.update(user=1),
        lambda: context.pop("user"),
    ):
        with pytest.raises((TypeError, AttributeError), match=r"does not change.*call\.replace\(context=") as refusal:
            change()
        assert "hunter2" not in str(refusal.value)
    with pytest.raises(AttributeError, match=r'by its key: context\["user"\]'):
        context.user  # noqa: B018
    assert dict(context | {"more": 1}) == {"user": "hunter2", "more": 1}
    assert dict(copy.copy(context)) == {"user": "hunter2"}


@pytest.mark.req("UNI-6")
def test_a_call_does_not_change_and_says_what_to_write() -> None:
    u, seen = Universe(), list[str]()

    @u.tool
    def save(n: int) -> int:
        return n

    async def layer(call: Any, next_h: Any) -> Any:
        for change in (
            lambda: call.arguments.__setitem__("n", 2),
            lambda: call.arguments.update(n=2),
            lambda: setattr(call, "arguments", {}),
        ):
            with pytest.raises((TypeError, dataclasses.FrozenInstanceError)) as refusal:
                change()
            seen.append(str(refusal.value))
        return await next_h(call.replace(arguments={**copy.deepcopy(call.arguments), "n": 7}))

    u.use(layer)

    assert called(u, "save", n=1).value == 7
    assert len(seen) == 3
    assert all("next_h(call.replace(arguments=" in each for each in seen)


@pytest.mark.req("UNI-6")
def test_a_tool_may_ask_for_another_call_and_says_why() -> None:
    u = Universe()

    @u.tool
    def weather(city: str) -> str:
        raise ModelRetry("There are several. Add the country.", countries=["US", "GB"])

    result = called(u, "weather", city="Boston")

    assert issubclass(ModelRetry, DomainError)
    assert (result.status, result.code, result.message) == (
        Status.TOOL_ERROR,
        "MODEL_RETRY",
        "There are several. Add the country.",
    )
    assert result.details == ({"countries": ["US", "GB"]},)


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize(
    ("value", "keep", "masked"),
    [
        ("4242424242424242", 4, "•••4242"),
        ("4242424242424242", 0, "•••"),
        ("1234567", 2, "•••"),
        ("12345678", 2, "•••78"),
        (12345678, 2, "•••78"),
        ("", 4, "•••"),
        ({"card": "4242424242424242", "ok": True, "no": None}, 4, {"card": "•••4242", "ok": True, "no": None}),
        ([b"abcdefghijkl", ("a",)], 2, ["•••", ["•••"]]),
    ],
)
def test_what_is_masked_for_a_log_tells_neither_value_nor_length(value: Any, keep: int, masked: Any) -> None:
    assert mask(value, keep) == masked
