"""Injected arguments: does a tool get what is injected, and does nobody else see or set it?"""

from __future__ import annotations

import logging
import threading
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict

from tests.support.sdk_calls import asked, called, dispatched, run
from unitools import Context, Factory, Injected, Status, ToolError, Universe, middleware
from unitools.annotations import get_parameter_type
from unitools.registration_errors import NotATool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SECRET = "hunter2"


class Uncopyable:
    def __deepcopy__(self, memo: Any) -> Any:
        raise AssertionError("injected values are not copied")

    def __repr__(self) -> str:
        return SECRET


def bank() -> Universe:
    u = Universe()

    @u.tool(tags=["finance"])
    def balance(user: Annotated[str, Injected("uid_key")], currency: str = "EUR") -> str:
        """Balance.

        Args:
            user: whose account
        """
        return f"{user} {currency}"

    return u


@pytest.mark.req("UNI-7")
@pytest.mark.parametrize("name", ["user", "uid_key", "p_user"])
def test_a_model_cannot_give_what_is_injected(name: str, caplog: Any) -> None:
    u = bank()

    with caplog.at_level(logging.DEBUG):
        [spoofed] = dispatched(u, ("balance", {name: "mallory"}), context={"uid_key": SECRET})

    assert (spoofed.status, spoofed.executed) == (Status.INVALID_ARGUMENTS, False)
    assert called(u, "balance", {"uid_key": SECRET}).value == f"{SECRET} EUR"
    for told in (spoofed.to_content(), caplog.text):
        assert "mallory" not in told
        assert SECRET not in told
    [unknown] = dispatched(u, ("balance", {"nobodys": "mallory"}), context={"uid_key": SECRET})
    assert spoofed.to_content() == unknown.to_content().replace("nobodys", name)  # that it is injected does not show


@pytest.mark.req("UNI-2")
@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "anthropic", "gemini", "mcp", "xml", "markdown"])
def test_no_rendering_shows_what_is_injected(dialect: str) -> None:
    rendered = bank()["finance"].render(dialect)

    assert "currency" in str(rendered.payload)
    for hidden in ("user", "uid_key", "whose account"):
        assert hidden not in str(rendered.payload) + repr(rendered)


@pytest.mark.req("UNI-7")
def test_values_are_handed_on_as_they_are() -> None:
    u, got = Universe(), list[Any]()
    given = Uncopyable()

    @u.tool
    def work(db: Annotated[Uncopyable, Injected("db")], lock: Any = Injected("lock")) -> None:  # noqa: B008
        got.extend([db, lock])

    lock = threading.Lock()
    assert called(u, "work", {"db": given, "lock": lock}).status is Status.OK
    assert [each is expected for each, expected in zip(got, [given, lock], strict=True)] == [True, True]
    assert SECRET not in repr(Context({"db": given}))


@pytest.mark.req("UNI-7")
def test_what_is_missing_is_told_to_the_log_only(caplog: Any) -> None:
    u, runs = Universe(), list[str]()

    @u.tool
    def work(db: Annotated[str, Injected("the_db")], user: Annotated[str | None, Injected("user")] = None) -> str:
        runs.append(db)
        return f"{db} {user}"

    with caplog.at_level(logging.ERROR):
        missing = called(u, "work", {"user": SECRET})

    assert (missing.status, missing.executed, runs) == (Status.INTERNAL, False, [])
    assert "the_db" not in repr(missing)
    assert "'the_db'" in caplog.text
    assert SECRET not in caplog.text + repr(missing)
    assert called(u, "work", {"the_db": "x"}).value == "x None"


@pytest.mark.req("UNI-7")
def test_arguments_are_validated_before_anything_is_made() -> None:
    u, made = Universe(), list[str]()

    @u.tool
    def work(n: int, db: Annotated[str, Injected("db")]) -> None: ...

    context = {"db": Factory(lambda _: made.append("made"))}
    assert called(u, "work", context, n="x").status is Status.INVALID_ARGUMENTS
    assert made == []
    assert called(u, "work", context, n=1).status is Status.OK
    assert made == ["made"]


@pytest.mark.req("UNI-7")
def test_what_a_factory_returns_is_made_once_for_a_dispatch_and_what_it_yields_once_for_a_call() -> None:
    u, said = Universe(), list[str]()

    async def pool(context: Context) -> str:
        said.append(f"pool of {context['user']}")
        return "pool"

    def cursor(context: Context) -> Iterator[str]:
        said.append("open")
        try:
            yield "cursor"
        finally:
            said.append("close")

    async def session(context: Context) -> AsyncIterator[str]:
        said.append("begin")
        yield "session"
        said.append("end")

    @asynccontextmanager
    async def not_called(_: Context) -> AsyncIterator[str]:
        raise AssertionError
        yield ""

    @u.tool
    def work(
        pool: Annotated[str, Injected()],
        cursor: Annotated[str, Injected()],
        session: Annotated[str, Injected()],
    ) -> str:
        said.append("work")
        return f"{pool} {cursor} {session}"

    u.provide("pool", Factory(pool))
    u.provide("cursor", Factory(cursor))
    u.provide("unused", Factory(not_called))
    context = {"user": "ada", "session": Factory(session)}
    results = dispatched(u, ("work", {}), ("work", {}), context=context, parallel=1)

    assert [each.value for each in results] == ["pool cursor session"] * 2
    assert said == ["pool of ada", *(["open", "begin", "work", "end", "close"] * 2)]


@pytest.mark.req("UNI-7")
def test_a_call_whose_context_was_replaced_shares_nothing_with_the_others() -> None:
    u = Universe()

    @u.tool
    async def who(mine: bool, account: Annotated[str, Injected("account")]) -> str:
        return account

    @u.use
    async def authenticate(call: Any, next_h: Any) -> Any:
        user = "ada" if call.arguments["mine"] else "eve"
        return await next_h(call.replace(context={**call.context, "user": user}))

    u.provide("account", Factory(lambda context: f"account of {context['user']}"))

    assert [each.value for each in dispatched(u, ("who", {"mine": True}), ("who", {"mine": False}))] == [
        "account of ada",
        "account of eve",
    ]


@pytest.mark.req("UNI-7")
def test_the_context_of_a_call_comes_before_what_the_universe_provides() -> None:
    u = bank()
    u.provide("uid_key", "anybody")

    assert called(u, "balance").value == "anybody EUR"
    assert called(u, "balance", {"uid_key": "ada"}).value == "ada EUR"


@pytest.mark.req("UNI-7")
def test_a_factory_that_fails_stops_only_the_calls_that_need_it_and_tells_no_text(caplog: Any) -> None:
    u = bank()

    @u.tool
    def free() -> str:
        return "free"

    def fails(context: Context) -> str:
        raise ConnectionError(f"postgres://{SECRET}@db")

    with caplog.at_level(logging.DEBUG):
        results = dispatched(u, ("balance", {}), ("free", {}), context={"uid_key": Factory(fails)})

    assert [each.status for each in results] == [Status.INTERNAL, Status.OK]
    assert "ConnectionError at test_injected_arguments.py" in caplog.text
    assert SECRET not in caplog.text + repr(results)


@pytest.mark.req("UNI-7")
def test_what_a_factory_yields_learns_of_the_error_of_the_tool_which_stays_the_same() -> None:
    u, seen = Universe(), list[BaseException]()
    fault = KeyError("x")

    def transaction(context: Context) -> Iterator[str]:
        try:
            yield "open"
        except KeyError as error:
            seen.append(error)
            raise

    @u.tool
    async def work(db: Annotated[str, Injected()]) -> None:
        raise fault

    @middleware(uid="watch")
    async def watch(call: Any, next_h: Any) -> Any:
        try:
            return await next_h(call)
        except KeyError as error:
            seen.append(error)
            raise

    u.use(watch)
    results = run(lambda: u.dispatch(asked(("work", {})), {"db": Factory(transaction)}))

    assert [each is fault for each in seen] == [True, True]
    assert results[0].code == "TOOL.FAILED"


@pytest.mark.req("UNI-6")
def test_a_factory_that_swallows_the_failure_of_a_tool_makes_it_no_success() -> None:
    u = Universe()

    def session(_: Context) -> Iterator[str]:
        with suppress(Exception):
            yield SECRET

    @u.tool
    async def pay(db: Annotated[str, Injected()]) -> None:
        raise ToolError("There is no money.")

    result = called(u, "pay", {"db": Factory(session)})

    assert (result.status, result.message) == (Status.TOOL_ERROR, "There is no money.")


@pytest.mark.req("UNI-2")
def test_what_is_injected_into_a_model_would_be_given_by_a_model_so_it_is_refused() -> None:
    u = Universe()

    class Payment(TypedDict):
        user: Annotated[str, Injected("uid")]

    with pytest.raises(NotATool, match="parameter of the tool"):

        @u.tool
        async def pay(payment: Payment) -> None: ...


def test_what_is_injected_is_read_as_its_type_without_the_mark() -> None:
    """A hub reads what a tenant has set, and shows its schema."""

    def tool(
        rate: Annotated[float, Injected()], day: Annotated[int, Field(ge=1), Injected("d")] | None, name: str = ""
    ) -> None: ...

    assert get_parameter_type(tool, "rate") is float
    assert TypeAdapter(get_parameter_type(tool, "day")).json_schema()["anyOf"] == [
        {"type": "integer", "minimum": 1},
        {"type": "null"},
    ]
    assert get_parameter_type(tool, "name") is str
    assert get_parameter_type(tool, "none") is Any
