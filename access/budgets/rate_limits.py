"""Rate limits: how fast calls and failures may come.

GCRA (even spacing with a burst) through throttled-py, counted in Redis where there is one and in this process otherwise. When
Redis does not answer, each process counts for itself and says so in the log: a rate is soft, budgets in the database stay hard.
"""

from __future__ import annotations

import ipaddress
import logging
import math
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from django.conf import settings
from throttled import MemoryStore, RedisStore, Throttled, exceptions
from throttled.rate_limiter import per_duration

from access.budgets.lines import Demand, describe_line
from access.problems import RateLimited
from kernel.http.rate_limit_fields import RateLimitState
from kernel.outages import Outage
from kernel.singleton import Once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from uuid import UUID

    from throttled.rate_limiter import RateLimitState as StoredRate
    from throttled.store import BaseStore

    from access.budgets.lines import BudgetLine
    from kernel.problems import Problem

R = TypeVar("R")
log = logging.getLogger("toolhub.rates")
PREFIX = "toolhub-rates"
BURST_SHARE = 10  # a tenth of a window's calls may come at once
MAX_KEYS = 65_536  # in memory; the least used are forgotten first
REDIS_TIMEOUT_S = 0.25
MINUTE_S = 60


class RateLimit(NamedTuple):
    amount: int
    window_s: int
    burst: int

    @classmethod
    def of(cls, amount: int, window_s: int) -> RateLimit:
        """That of a budget."""
        return cls(amount, window_s, math.ceil(amount / BURST_SHARE))

    def used_up(self, name: str, wait_s: float) -> RateLimitState:
        return RateLimitState(name, self.amount, self.window_s, 0, math.ceil(wait_s))


ONCE_A_MINUTE = RateLimit(amount=1, window_s=MINUTE_S, burst=1)


outage = Outage(
    log,
    gone="Redis does not answer; rates are counted by each process for itself",
    back="Redis answers again; rates are counted together",
)


@Once
def make_memory_store() -> MemoryStore:
    return MemoryStore(options={"MAX_SIZE": MAX_KEYS})


@lru_cache(maxsize=4)
def _redis(url: str) -> RedisStore:
    return RedisStore(
        server=url, options={"SOCKET_TIMEOUT": REDIS_TIMEOUT_S, "SOCKET_CONNECT_TIMEOUT": REDIS_TIMEOUT_S}
    )


@lru_cache(maxsize=1024)
def _limiter(store: BaseStore, rate: RateLimit) -> Throttled:
    quota = per_duration(timedelta(seconds=rate.window_s), rate.amount, burst=rate.burst)
    return Throttled(using="gcra", quota=quota, store=store, key_prefix=PREFIX)


def seconds_to_wait(key: str, rate: RateLimit, *, take: bool, cost: int = 1) -> float:
    """0 when one more may come now. ``take``: it does, and counts as so many; without, nothing is counted."""

    def ask(store: BaseStore) -> float:
        limiter = _limiter(store, rate)
        if take:
            return limiter.limit(key, cost).state.retry_after
        state = limiter.peek(key)  # whose retry_after is short by one interval
        return 0 if state.remaining else state.reset_after - (rate.burst - 1) * rate.window_s / rate.amount

    return _ask_store(ask)


def peek_rate(budget_id: UUID, rate: RateLimit) -> StoredRate:
    """What is left of the rate of a budget."""
    return _ask_store(lambda store: _limiter(store, rate).peek(_budget_key(budget_id, rate.amount)))


def _budget_key(budget_id: UUID, amount: int) -> str:
    """With the amount, so that a rate that was changed begins anew."""
    return f"budget:{budget_id}:{amount}"


def _ask_store(ask: Callable[[BaseStore], R]) -> R:
    """Redis where there is one and it answers, else the memory of this process."""
    if settings.TOOLHUB_REDIS_URL and not outage.is_on():
        try:
            found = ask(_redis(settings.TOOLHUB_REDIS_URL))
        except exceptions.StoreUnavailableError as error:
            outage.begin(error.__cause__ if isinstance(error.__cause__, Exception) else error)
        else:
            outage.end()
            return found
    return ask(make_memory_store())


def build_rate_limit(line: BudgetLine) -> RateLimit:
    return RateLimit.of(line.amount, line.window_s)


def check_rates(lines: Iterable[BudgetLine], *, take: bool = False) -> None:
    """Raise when calls of one of the lines come too fast. Preflight only looks; ``take`` counts the call."""
    for line in lines:
        if not line.is_rate:
            continue
        rate = build_rate_limit(line)
        wait = seconds_to_wait(_budget_key(line.budget_id, line.amount), rate, take=take)
        if wait > 0:
            whose = describe_line(line)
            raise _build_refusal(
                f"Calls come too fast: {whose} allows {line.amount:,} in {line.window_s:,} s, evenly spread.",
                "Wait `retry_after_s` seconds, and call more slowly.",
                rate.used_up(line.wire_id, wait),
                budget=line.to_json(Demand()),
            )


def _build_refusal(sentence: str, remedy: str, limit: RateLimitState, **details: Any) -> RateLimited:
    """``limit`` is what the headers of the answer say."""
    problem = RateLimited(sentence, remedy=remedy, details=details, retry_after_s=limit.reset_s)
    problem.limit = limit
    return problem


# What the hub limits by itself, so that failures cost little and cannot fill what is kept. 0 a minute turns it off.


def _check_built_in(key: str, a_minute: int, sentence: str, remedy: str, *, because: Problem) -> None:
    if not a_minute:
        return
    rate = RateLimit(a_minute, MINUTE_S, a_minute)
    wait = seconds_to_wait(key, rate, take=True)
    if wait > 0:
        _log_once_a_minute(sentence, key)
        limit = rate.used_up(key.partition(":")[0], wait)
        raise _build_refusal(sentence, remedy, limit, because=because.to_error()) from because


def _log_once_a_minute(sentence: str, key: str) -> None:
    """Each process for itself: who is refused as fast as they can ask must not fill the log either."""
    if not _limiter(make_memory_store(), ONCE_A_MINUTE).limit(f"logged:{key}").limited:
        log.warning("%s This is logged once a minute. (%s)", sentence, key)


def client_network(address: str) -> str:
    """The address, or for IPv6 the /64 that one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else str(parsed)


def check_failed_key(address: str, *, because: Problem) -> None:
    """One more request from there that carries no valid key. Valid keys from the same place are answered as ever."""
    _check_built_in(
        f"failed-keys:{client_network(address)}",
        settings.TOOLHUB_RATE_FAILED_KEYS,
        "Too many requests without a valid API key come from this address.",
        "Wait `retry_after_s` seconds, and send a valid key.",
        because=because,
    )


def check_refused_call(agent: str, *, because: Problem) -> None:
    """One more refused call of the agent. Beyond the limit refusals are answered, but no longer written down one by one."""
    _check_built_in(
        f"refused-calls:{agent}",
        settings.TOOLHUB_RATE_REFUSED_CALLS,
        "Too many calls of this agent are refused.",
        "Wait `retry_after_s` seconds, and change what the last refusal asked for.",
        because=because,
    )


DOCUMENT_FETCHES = RateLimit(60, 3600, 20)


def check_registration(address: str) -> None:
    """One more program of that address that makes itself known (:mod:`access.oauth.registration`)."""
    an_hour = settings.TOOLHUB_RATE_REGISTRATIONS
    if an_hour:
        key, sentence = f"registration:{client_network(address)}", "Too many programs register from this address."
        _check_rate(key, RateLimit(an_hour, 3600, an_hour), sentence, "Wait `retry_after_s` seconds.")


def check_document_fetch(person: str) -> None:
    """One more document of a program that is fetched because this person was sent here with its address."""
    sentence = "Too many programs that the hub does not know have sent you here."
    remedy = "Wait `retry_after_s` seconds, and connect again."
    _check_rate(f"document-fetch:{person}", DOCUMENT_FETCHES, sentence, remedy)


def _check_rate(key: str, limit: RateLimit, sentence: str, remedy: str) -> None:
    wait = seconds_to_wait(key, limit, take=True)
    if wait > 0:
        raise _build_refusal(sentence, remedy, limit.used_up(key.partition(":")[0], wait))
