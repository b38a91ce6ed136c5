"""Middlewares: what does each kind of middleware do to a call, one by one?"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from tests.support.sdk_calls import called, run
from unitools import Deny, Injected, NeedsApproval, Status, Tag, ToolError, ToolResult, Universe, middleware
from unitools.registration_errors import MiddlewareClash

SECRET = "postgres://root:hunter2@db"


class Boom(Exception):
    pass


def counting(**said: Any) -> tuple[Universe, list[str]]:
    u, runs = Universe(), list[str]()

    async def work(amount: int = 1) -> int:
        runs.append("ran")
        return amount

    u.tool(**said)(work)
    return u, runs


def traced(trace: list[str], name: str) -> Any:
    @middleware(uid=name)
    async def layer(call: Any, next_h: Any) -> Any:
        trace.append(name)
        value = await next_h(call)
        trace.append(f"{name} again")
        return value

    return layer


@pytest.mark.req("UNI-6")
def test_layers_stand_global_then_scoped_then_local_and_each_once() -> None:
    u, trace = Universe(), list[str]()
    outer, scoped, local = (traced(trace, name) for name in ("global", "scoped", "local"))

    @u.tool(tags=["x"], middlewares=[outer, local, scoped])
    async def work() -> str:
        return "done"

    u.use(scoped, scope=Tag("x"))
    u.use(traced(trace, "elsewhere"), scope="y")
    u.use(outer)

    assert called(u, "work").value == "done"
    assert trace == ["global", "scoped", "local", "local again", "scoped again", "global again"]


@pytest.mark.req("UNI-6")
def test_one_uid_for_two_things_is_refused_where_it_is_used_and_changes_nothing() -> None:
    u, runs = counting()
    u.use(middleware(uid="audit")(lambda call, next_h: next_h(call)))

    with pytest.raises(MiddlewareClash, match="Two middlewares have the uid audit"):
        u.use(middleware(uid="audit")(lambda call, next_h: ToolResult.error("other")))

    assert called(u, "work").status is Status.OK
    assert runs == ["ran"]


@pytest.mark.req("UNI-6")
def test_a_middleware_cannot_be_critical_and_not_critical_for_one_tool() -> None:
    u, _ = counting(tags=["x"])

    async def audit(call: Any, next_h: Any) -> Any:
        return await next_h(call)

    u.use(audit, critical=False)
    with pytest.raises(MiddlewareClash, match="as critical and as not critical"):
        u.use(audit, scope=Tag("x"))
    u.use(audit, scope=Tag("y"))


@pytest.mark.req("UNI-6")
def test_what_fails_after_the_tool_and_is_not_critical_leaves_the_value_and_is_named(caplog: Any) -> None:
    u, runs = counting()

    async def metrics(call: Any, next_h: Any) -> Any:
        await next_h(call)
        raise Boom(SECRET)

    u.use(metrics, critical=False)
    with caplog.at_level(logging.ERROR, "unitools"):
        result = called(u, "work", amount=3)

    assert (result.value, runs) == (3, ["ran"])
    assert [uid.rpartition(".")[2] for uid in result.skipped_middlewares] == ["metrics"]
    assert "metrics failed: Boom at test_middlewares.py" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize("after", [False, True])
def test_what_is_critical_and_fails_ends_the_call_and_says_whether_the_tool_ran(after: bool) -> None:
    u, runs = counting()

    async def audit(call: Any, next_h: Any) -> Any:
        if after:
            await next_h(call)
        raise Boom(SECRET)

    u.use(audit)
    result = called(u, "work")

    assert result.status is Status.MIDDLEWARE_ERROR
    assert result.executed is after
    assert runs == ["ran"] * after
    assert ("has run all the same" in result.message) is after
    assert SECRET not in repr(result) + result.to_content()


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Deny("Not now"), Status.DENIED),
        (NeedsApproval("Ask Olivia"), Status.NEEDS_APPROVAL),
        (ToolError("No stock", code="STOCK.NONE", left=0), Status.TOOL_ERROR),
        (ExceptionGroup("together", [Boom(), Deny("Not now")]), Status.DENIED),
    ],
)
def test_a_decision_is_honoured_whether_or_not_its_layer_is_critical(outcome: Exception, status: Status) -> None:
    u, runs = counting()

    async def policy(call: Any, next_h: Any) -> Any:
        raise outcome

    u.use(policy, critical=False)
    result = called(u, "work")

    assert (result.status, result.skipped_middlewares, runs) == (status, (), [])
    if isinstance(outcome, ToolError):
        assert (result.message, result.code, result.details) == ("No stock", "STOCK.NONE", ({"left": 0},))


@pytest.mark.req("UNI-6")
def test_the_error_of_a_tool_is_the_same_object_in_every_layer_and_hidden_from_the_model() -> None:
    u, seen = Universe(), list[Exception]()
    fault = Boom(SECRET)

    @u.tool
    async def work() -> str:
        raise fault

    for name in ("outer", "inner"):

        @middleware(uid=name)
        async def watch(call: Any, next_h: Any) -> Any:
            try:
                return await next_h(call)
            except Exception as error:
                seen.append(error)
                raise

        u.use(watch, critical=name == "outer")
    result = called(u, "work")

    assert all(each is fault for each in seen)
    assert len(seen) == 2
    assert (result.status, result.code, result.skipped_middlewares) == (Status.TOOL_ERROR, "TOOL.FAILED", ())
    assert SECRET not in repr(result) + result.to_content()


@pytest.mark.req("UNI-6")
def test_a_layer_translates_an_error_by_a_decision_and_masks_none_by_its_own_fault() -> None:
    u = Universe()

    @u.tool
    async def work(translated: bool) -> str:
        raise KeyError("missing")

    @u.use
    async def translate(call: Any, next_h: Any) -> Any:
        try:
            return await next_h(call)
        except KeyError as error:
            raise (ToolError("There is no such row.") if call.arguments["translated"] else Boom()) from error

    assert called(u, "work", translated=True).message == "There is no such row."
    masked = called(u, "work", translated=False)
    assert masked.code == "TOOL.FAILED"
    assert masked.skipped_middlewares


@pytest.mark.req("UNI-6")
def test_only_what_says_so_runs_the_tool_again_and_only_where_that_changes_nothing() -> None:
    async def again(call: Any, next_h: Any) -> Any:
        return [await next_h(call), await next_h(call)][-1]

    for idempotent, reentrant, expected in ((True, True, 2), (False, True, 1), (True, False, 1)):
        u, runs = counting(idempotent=idempotent)
        u.use(middleware(uid="retry", reentrant=reentrant)(again))
        assert called(u, "work").status is Status.OK
        assert len(runs) == expected


@pytest.mark.req("UNI-7")
def test_a_layer_corrects_refused_arguments_and_the_call_goes_on() -> None:
    u, runs = counting()
    refused: list[ValidationError] = []

    async def correct(call: Any, next_h: Any) -> Any:
        try:
            return await next_h(call)
        except ValidationError as error:
            refused.append(error)
            return await next_h(call.replace(arguments={"amount": int(call.arguments["amount"])}))

    u.use(correct)

    assert called(u, "work", amount="7").value == 7
    assert (len(refused), runs) == (1, ["ran"])
    assert "'7'" not in str(refused[0])


@pytest.mark.req("UNI-6")
def test_a_call_is_not_changed_but_replaced() -> None:
    u, _ = counting()
    seen: dict[str, Any] = {}

    @middleware(uid="outer")
    async def outer(call: Any, next_h: Any) -> Any:
        for change in (
            lambda: call.context.__setitem__("user", "eve"),
            lambda: call.arguments.__setitem__("amount", 5),
            lambda: setattr(call, "arguments", {}),
        ):
            with pytest.raises((TypeError, AttributeError)):
                change()
        return await next_h(call.replace(context={**call.context, "user": "ada"}, arguments={"amount": 9}))

    @middleware(uid="inner")
    async def inner(call: Any, next_h: Any) -> Any:
        seen.update(call.context, name=call.name, id=call.id, tool=call.tool.name, told=repr(call) + repr(call.context))
        return await next_h(call)

    u.use(outer)
    u.use(inner)

    assert called(u, "work", {"db": SECRET}).value == 9
    assert seen.pop("told").count(SECRET) == 0
    assert seen == {"db": SECRET, "user": "ada", "name": "work", "id": "call_0", "tool": "work"}


@pytest.mark.req("UNI-6")
def test_a_slow_layer_loses_its_own_time_and_not_that_of_the_tool() -> None:
    u = Universe()
    finished = []

    @u.tool
    async def slow() -> str:
        await anyio.sleep(0.05)
        finished.append(True)
        return "done"

    @middleware(uid="quick", timeout=0.01)
    async def quick(call: Any, next_h: Any) -> Any:
        return await next_h(call)

    @middleware(uid="stuck", timeout=0.01)
    async def stuck(call: Any, next_h: Any) -> Any:
        await next_h(call)
        await anyio.sleep_forever()

    u.use(stuck, critical=False)
    u.use(quick)
    result = called(u, "slow")

    assert (result.value, result.skipped_middlewares, finished) == ("done", ("stuck",), [True])


@pytest.mark.req("UNI-6")
def test_a_layer_that_gives_the_rest_a_time_ends_the_call_when_it_is_over() -> None:
    u = Universe()

    @u.tool
    async def forever() -> str:
        await anyio.sleep_forever()
        return "never"

    @u.use
    async def deadline(call: Any, next_h: Any) -> Any:
        with anyio.fail_after(0.01):
            return await next_h(call)

    result = called(u, "forever")

    assert (result.status, result.executed) == (Status.TIMEOUT, True)


@pytest.mark.req("UNI-6")
def test_what_a_layer_leaves_behind_does_not_start_the_tool_later() -> None:
    u, runs = counting()
    left = []

    @u.use
    async def forgets(call: Any, next_h: Any) -> Any:
        left.append(asyncio.ensure_future(next_h(call)))
        return ToolResult.error("enough")

    async def main() -> ToolResult:
        result = await u.call("work")
        await asyncio.gather(*left, return_exceptions=True)
        return result

    assert run(main).message == "enough"
    assert runs == []


@pytest.mark.req("UNI-6")
def test_objects_and_plain_functions_are_layers_too() -> None:
    u, runs = counting()

    class Audit:
        async def __call__(self, call: Any, next_h: Any) -> Any:
            return await next_h(call)

    audit = Audit()
    u.use(audit)
    u.use(lambda call, next_h: next_h(call))
    u.use(audit, scope=Tag("x"))

    assert called(u, "work").value == 1
    for wrong in ("audit", Audit, None):
        with pytest.raises(TypeError, match="is no middleware"):
            u.use(wrong)
    assert runs == ["ran"]


def test_an_injected_value_is_no_part_of_what_a_failing_call_tells(caplog: Any) -> None:
    u = Universe()

    @u.tool
    def work(db: str = Injected("db")) -> str:  # type: ignore[assignment]
        raise RuntimeError(f"cannot reach {db}")

    with caplog.at_level(logging.DEBUG):
        result = called(u, "work", {"db": SECRET})

    assert result.code == "TOOL.FAILED"
    assert "RuntimeError at test_middlewares.py" in caplog.text
    assert SECRET not in caplog.text + repr(result)
