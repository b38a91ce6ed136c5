"""Memory client: do an author's tests get what a hub's box would give, and is all that was provided closed at the end?"""

from __future__ import annotations

from datetime import date  # noqa: TC003 - read while it runs
from typing import Annotated, Any

import anyio
import pytest

from unitools import Context, Deny, Factory, Injected, Universe, runtime
from unitools.memory_client import MemoryClient
from unitools.provisions import NeedsAsync, UniverseClosed


def bank() -> Universe:
    u = Universe("acme.bank", version="1.0.0")

    @u.tool("rate.get")
    def get_rate(
        currency: str,
        ctx: Context,
        since: Annotated[date, Injected("config.since")],
        key: Annotated[str, Injected("secret.BANK_KEY")],
        db: Annotated[dict[str, str], Injected("db")],
        locale: Annotated[str, Injected("call.locale")],
    ) -> dict[str, str]:
        """The rate."""
        if currency not in db:
            raise runtime.NotFound("No such currency.", known=sorted(db))
        ctx.progress(0.5, "Asking")
        runtime.warn("Rates of yesterday.")
        runtime.used_source("rates", name="ecb", version="1")
        runtime.set_ttl(60)
        runtime.artifact("rates.csv", "EUR,1")
        return {"rate": db[currency], "since": str(since.year), "key": key, "locale": locale}

    @u.tool
    def wrong() -> int:
        return "seven"  # type: ignore[return-value]

    @u.tool
    def fails() -> int:
        raise ZeroDivisionError

    @u.tool
    def denied() -> int:
        raise Deny("Not today.")

    return u


CLIENT = MemoryClient(
    bank(),
    config={"since": "2026-01-02"},
    secrets={"BANK_KEY": "k"},
    context={"db": {"EUR": "1.2"}},
    locale="de-DE",
)


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize("name", ["rate.get", "rate_get", "acme.bank.rate_get"])
def test_a_call_gives_the_value_and_all_that_the_tool_said(name: str) -> None:
    answer = CLIENT.call(name, {"currency": "EUR"})

    assert answer.data == {"rate": "1.2", "since": "2026", "key": "k", "locale": "de-DE"}
    assert [(each.fraction, each.message) for each in answer.messages] == [(0.5, "Asking")]
    assert (answer.warnings, answer.ttl_seconds) == (("Rates of yesterday.",), 60)
    assert answer.sources == ({"type": "rates", "name": "ecb", "version": "1"},)
    assert answer.artifacts == (("rates.csv", "", b"EUR,1"),)


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("rate.get", {"currency": "XXX"}, runtime.NotFound),
        ("rate.get", {"currency": 7}, runtime.InvalidArgument),
        ("wrong", {}, runtime.ResultInvalid),
        ("fails", {}, ZeroDivisionError),
        ("denied", {}, runtime.ComplianceBlocked),
        ("missing", {}, LookupError),
    ],
)
def test_what_fails_is_raised_as_it_was(name: str, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        CLIENT.call(name, arguments)


@pytest.mark.req("UNI-6")
def test_the_tools_are_listed_as_models_see_them_and_rendered_at_once() -> None:
    assert [each.name for each in CLIENT.list_tools()] == ["rate.get", "wrong", "fails", "denied"]
    assert bank().render("claude-sonnet-4-5").payload == bank().tools.render("claude-sonnet-4-5").payload


class Closing:
    def __init__(self, name: str, closed: list[str], error: Exception | None = None) -> None:
        self.name, self.closed, self.error = name, closed, error

    def close(self) -> None:
        self.closed.append(self.name)
        if self.error:
            raise self.error


class ClosingAsync(Closing):
    async def aclose(self) -> None:
        super().close()

    close = None  # type: ignore[assignment]


@pytest.mark.req("UNI-6")
def test_a_universe_closes_what_it_was_provided_with_the_last_first_and_once() -> None:
    closed: list[str] = []
    with Universe() as u:
        first, kept = Closing("first", closed), Closing("kept", closed)
        u.provide("first", first)
        u.provide("again", first)
        u.provide("kept", kept, closes=False)
        u.provide("made", Factory(lambda _: Closing("made", closed)))
        u.provide("value", 7)
        u.provide("last", Closing("last", closed))

    assert closed == ["last", "first"]
    with pytest.raises(UniverseClosed, match="Make another one"):
        anyio.run(u.call, "anything")


@pytest.mark.req("UNI-6")
def test_one_that_does_not_close_keeps_none_open() -> None:
    closed: list[str] = []
    with pytest.raises(OSError, match="stuck"), Universe() as u:
        u.provide("first", Closing("first", closed))
        u.provide("second", Closing("second", closed, OSError("stuck")))

    assert closed == ["second", "first"]


@pytest.mark.req("UNI-6")
def test_what_has_to_be_awaited_is_closed_by_the_async_form_and_named_by_the_other() -> None:
    closed: list[str] = []

    async def work() -> None:
        async with Universe() as u:
            u.provide("db", ClosingAsync("db", closed))
            u.provide("other", Closing("other", closed))

    with pytest.raises(NeedsAsync, match="'db' has to be awaited: async with"), Universe() as u:
        u.provide("other", Closing("other", closed))
        u.provide("db", ClosingAsync("db", closed))
    assert closed == []

    anyio.run(work)
    assert closed == ["other", "db"]
