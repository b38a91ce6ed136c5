"""A Universe of tools with many kinds of parameters, results and ends, for tests that call them here and in a sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID  # noqa: TC003  pydantic reads it

import anyio
from pydantic import BaseModel, Field

from unitools import Context, Factory, Injected, ModelRetry, ToolError, Universe, mask, runtime

u = Universe("acme.shapes", version="1.0.0")


class Colour(StrEnum):
    RED, BLUE = "red", "blue"


@dataclass
class Line:
    sku: str
    quantity: int = 1
    colours: list[Colour] = field(default_factory=list)


class Order(BaseModel):
    id: UUID
    at: datetime
    total: Decimal
    lines: tuple[Line, ...]
    note: str | None = None
    by_day: dict[str, float] = Field(default_factory=dict)


class Counter:
    """An object that no JSON holds."""

    def __init__(self) -> None:
        self.opened = 1

    def read(self, start: int) -> int:
        return start + self.opened


def opened(_: Any) -> Any:
    counter = Counter()
    yield counter
    counter.opened = 0


u.provide("counter", Factory(opened))


async def stamp(call: Any, next_h: Any) -> Any:
    """Changes what the tool sees: it runs in the sandbox as well."""
    return await next_h(call.replace(arguments={**call.arguments, "note": "stamped"}))


@u.tool("Order__make", tags=["shop"], middlewares=[stamp])
async def make_order(
    id: UUID,
    day: date,
    lines: list[Line],
    price: Annotated[Decimal, Field(gt=0)] = Decimal("1.10"),
    wait: timedelta = timedelta(hours=1),
    note: str | None = None,
) -> Order:
    """Make an order.

    Args:
        lines: what is bought
        price: of each piece
    """
    at = datetime(day.year, day.month, day.day, tzinfo=UTC) + wait
    total = price * sum(line.quantity for line in lines)
    return Order(id=id, at=at, total=total, lines=tuple(lines), note=note, by_day={str(day): float(total)})


@u.tool()
def adds(a: int, b: float = 0.5, *, words: frozenset[str] = frozenset()) -> float:
    """Add two numbers, and the number of words."""
    return a + b + len(words)


@u.tool()
def greets(name: str, style: Literal["short", "long"] = "short") -> str:
    """Greet 您好."""
    return f"您好 {name}" if style == "long" else name


@u.tool()
def says_nothing(number: int) -> None:
    """Do nothing at all."""


@u.tool()
def takes_anything(value: Any) -> Any:
    """Give back what it got."""
    return value


@u.tool()
def counts(start: int, counter: Annotated[Counter, Injected("counter")]) -> int:
    """Count with something that the Universe provides."""
    return counter.read(start)


@u.tool()
def is_set_up(
    question: str,
    rate: Annotated[Decimal, Injected("config.rate")],
    key: Annotated[str, Injected("secret.SHOP_KEY")],
    currency: Annotated[str, Injected("call.currency")],
    day: Annotated[date, Injected("config.day")] = date(2026, 1, 2),
) -> dict[str, Any]:
    """Tell what it was given."""
    return {"rate": rate, "key_length": len(key), "currency": currency, "day": day, "question": question}


@u.tool()
def ends(how: str) -> str:
    """End in some way."""
    match how:
        case "out of stock":
            raise runtime.OutOfStock("Only 3 left.", available=3)
        case "own code":
            raise ToolError("The till is closed.", code="TILL.CLOSED", until="09:00")
        case "a bug":
            raise KeyError("what nobody may read")
        case "another type":
            return 7  # type: ignore[return-value]  # on purpose
    return how


STEPS = 30


@u.tool()
async def converts(name: str, ctx: Context) -> bytes:
    """Convert a file, and tell how far it is."""
    if name.count(".") != 1:
        raise ModelRetry("There are several files of this name. Add the ending: .csv or .xlsx.")
    ctx.log(f"Read {mask(name, keep=4)}.")
    for step in range(STEPS):
        ctx.progress((step + 1) / STEPS, "Converting")
        await anyio.sleep(0.1)
    return name.encode()
