"""Clock: what time it is for a tool, and what is chance.

Chance is the call's seed: the module ``random`` draws from it, and numpy's old functions where numpy is imported with the tool.
Time is the machine's, but in a replay. There both come from the record: the clock begins at the recorded moment, each look at it
takes a microsecond, to sleep takes as long as is said, and nothing else moves it; what asks the system for random bytes gets
them from the seed. So two replays of a tool that rests on nothing else say the same.

Not the same in two replays: the order of sets of texts, ``time.monotonic`` and ``time.perf_counter``, numbers of processes,
addresses in memory, the turns of threads, what a library in C asks by itself, and a tool that is a program.
"""

from __future__ import annotations

import datetime
import os
import random
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TICK_NS = 1000
_NODE = 0x01_00_5E_00_00_00  # a number that no network card has, for uuid1


def seed_chance(seed: int) -> None:
    """Before the tool is imported, and again before it is called."""
    random.seed(seed)
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        numbers.seed(seed & 0xFFFFFFFF)


def set_recorded_clock(now: datetime.datetime, seed: int) -> None:
    """Let this process see the recorded time and the recorded chance, before anything of the tool is imported."""
    clock = _RecordedClock(now)
    stream = random.Random(seed ^ 1)  # another one than the tool's own
    _swap({**_of_time(clock), **_of_datetime(clock), os.urandom: stream.randbytes, os.getrandom: _getrandom(stream)})
    _seed_all_from(stream)


class _RecordedClock:
    def __init__(self, now: datetime.datetime) -> None:
        since = now - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        self._ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
        self._rest = time.sleep

    def time_ns(self) -> int:
        self._ns += _TICK_NS
        return self._ns

    def time(self) -> float:
        return self.time_ns() / 10**9

    def sleep(self, seconds: float) -> None:
        self._rest(seconds)
        self._ns += int(seconds * 10**9)

    def parts(self) -> tuple[int, int]:
        """Seconds since 1970, and microseconds."""
        return divmod(self.time_ns() // 1000, 10**6)


def _of_time(clock: _RecordedClock) -> dict[Any, Any]:
    """What takes the place of what, in the module ``time``."""
    real_of, real_ns_of = time.clock_gettime, time.clock_gettime_ns

    def without(real: Any) -> Any:
        return lambda seconds=None: real(clock.time() if seconds is None else seconds)

    gmtime, localtime, ctime = without(time.gmtime), without(time.localtime), without(time.ctime)
    strftime, asctime = time.strftime, time.asctime
    return {
        time.time: clock.time,
        time.time_ns: clock.time_ns,
        time.sleep: clock.sleep,
        time.gmtime: gmtime,
        time.localtime: localtime,
        time.ctime: ctime,
        time.strftime: lambda form, at=None: strftime(form, localtime() if at is None else at),
        time.asctime: lambda at=None: asctime(localtime() if at is None else at),
        real_of: lambda which: clock.time() if which == time.CLOCK_REALTIME else real_of(which),
        real_ns_of: lambda which: clock.time_ns() if which == time.CLOCK_REALTIME else real_ns_of(which),
    }


def _of_datetime(clock: _RecordedClock) -> dict[Any, Any]:
    """The classes cannot be changed, so others that are like them take their place."""
    real_date, real_datetime, utc = datetime.date, datetime.datetime, datetime.UTC
    real: dict[type, type] = {}

    class Like(type):
        """Whatever is one of the real class is one of this."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real[cls]) if cls in real else super().__instancecheck__(instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real[cls]) if cls in real else super().__subclasscheck__(subclass)

    class Date(datetime.date, metaclass=Like):
        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(clock.time())

    class Moment(datetime.datetime, metaclass=Like):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            seconds, micros = clock.parts()
            return cls.fromtimestamp(seconds, tz).replace(microsecond=micros)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now(utc).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    for made, was in ((Date, real_date), (Moment, real_datetime)):
        real[made] = was
        made.__name__ = made.__qualname__ = was.__name__
        made.__module__ = "datetime"
    return {real_date: Date, real_datetime: Moment}


def _getrandom(stream: random.Random) -> Any:
    def getrandom(size: int, _: int = 0) -> bytes:
        return stream.randbytes(size)

    return getrandom


def _seed_all_from(stream: random.Random) -> None:
    """Whoever makes a generator without a seed, and whoever makes ids."""
    seed_it = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        seed_it(self, stream.getrandbits(128) if a is None else a, version)

    random.Random.seed = seed  # type: ignore[method-assign]
    random.seed = random._inst.seed
    ids: Any = __import__("uuid")  # not in a usual call
    ids._generate_time_safe, ids._node = None, _NODE


def _swap(places: dict[Any, Any]) -> None:
    """In every module that is there, by whatever name it knows them."""
    for name, module in list(sys.modules.items()):
        if name == __name__:
            continue
        for word, value in list(getattr(module, "__dict__", {}).items()):
            try:
                other = places.get(value)
            except TypeError:  # cannot be looked up, so it is none of them
                continue
            if other is not None:
                setattr(module, word, other)
