"""Batches: the items of one request, split for a provider that takes fewer at once, and what it answers joined in their order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeVar

import anyio

from llm.problems import ProviderAnswerUnreadable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from llm.usage import Usage

T = TypeVar("T")

MANY_MODELS = (
    "The provider named several models in the answers to one request, so it is not clear which is to be paid for."
)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one request may hold, and how many are under way beside each other. An item larger than ``max_bytes`` goes alone."""

    max_items: int
    max_bytes: int = 256 * 1024  # of the items in UTF-8
    max_parallel: int = 4


def split_items(items: Iterable[str], limits: BatchLimits) -> Iterator[tuple[str, ...]]:
    """The items in their order, as few batches as the limits allow."""
    batch: list[str] = []
    held = 0
    for item in items:
        size = len(item.encode())
        if batch and (len(batch) == limits.max_items or held + size > limits.max_bytes):
            yield tuple(batch)
            batch, held = [], 0
        batch.append(item)
        held += size
    if batch:
        yield tuple(batch)


async def ask_in_batches(
    items: Iterable[str], limits: BatchLimits, ask: Callable[[int, tuple[str, ...]], Awaitable[T]]
) -> list[T]:
    """What ``ask(number of the batch, its items)`` answers to each, in order. The first that fails stops the others, and the whole
    fails with its error: half of the vectors would be no answer."""
    batches = list(split_items(items, limits))
    answers: dict[int, T] = {}
    limiter = anyio.Semaphore(limits.max_parallel)

    async def run(number: int) -> None:
        async with limiter:
            answers[number] = await ask(number, batches[number])

    try:
        async with anyio.create_task_group() as group:
            for number in range(len(batches)):
                group.start_soon(run, number)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [answers[number] for number in range(len(batches))]


def sum_usages(usages: Sequence[Usage | None]) -> Usage | None:
    """Of all batches together; None where the provider was silent about one, for a sum without it would be too small."""
    known = [usage for usage in usages if usage is not None]
    return reduce(add, known) if known and len(known) == len(usages) else None


def find_one_model(names: Iterable[str]) -> str:
    """The model that answered all batches; empty where none was named. Raises ProviderAnswerUnreadable."""
    found = {name for name in names if name}
    if len(found) > 1:
        raise ProviderAnswerUnreadable(MANY_MODELS)
    return found.pop() if found else ""
