"""Return what breaks whoever reads it."""

from __future__ import annotations

import json
import os
import struct
from typing import Any, NoReturn


def _raw(text: bytes) -> NoReturn:
    rest = json.dumps({"report": {}, "attempts": [], "error": {"type": "", "message": ""}}).encode()
    os.write(3, struct.pack("!BII", 1, len(text), len(rest)) + text + rest)
    os._exit(0)


def half_a_surrogate_pair() -> NoReturn:
    _raw(b'"\\ud800"')


def nul() -> NoReturn:
    _raw(b'{"a": "\\u0000"}')


def a_key_twice() -> NoReturn:
    _raw(b'{"a": 1, "a": 2}')


def not_a_number() -> NoReturn:
    _raw(b"[NaN, Infinity]")


def a_number_of_a_thousand_digits() -> NoReturn:
    _raw(b"9" * 1000)


def a_hundred_thousand_brackets() -> NoReturn:
    _raw(b"[" * 100_000 + b"]" * 100_000)


def not_utf8() -> NoReturn:
    _raw(b'"\xff\xfe"')


def a_number_that_is_infinite() -> NoReturn:
    _raw(b"[1e999, -1e999]")


def two_values() -> NoReturn:
    _raw(b'"" "forged"')


def nothing_at_all() -> NoReturn:
    _raw(b"")


def a_mark_before_the_text() -> NoReturn:
    _raw(b"\xef\xbb\xbf[]")


def a_name_with_nul() -> NoReturn:
    _raw(b'{"\\u0000": 1}')


def half_a_pair_in_a_name() -> NoReturn:
    _raw(b'{"\\udfff": 1}')


def quotes_that_hide_brackets() -> NoReturn:
    _raw(b'["\\\\", ' + b"[" * 50_000 + b'"]"' + b"]" * 50_000 + b"]")


def exception_without_end_of_causes() -> NoReturn:
    error: BaseException = ValueError("x")
    for _ in range(100_000):
        new = ValueError("x")
        new.__cause__ = error
        error = new
    raise error


def exception_group_of_many() -> NoReturn:
    raise ExceptionGroup("x", [ExceptionGroup("y", [ValueError("z" * 1000)] * 1000)] * 20)


def a_value_that_changes_while_it_is_read() -> Any:
    class Pairs(dict[str, int]):
        def items(self) -> Any:
            self["x" * len(self)] = 1
            return [("a", 1), ("a", 2)]

    return Pairs() or []


def text_that_lies() -> Any:
    class Text(str):
        def __str__(self) -> str:
            return "forged"

        def encode(self, *_: object) -> bytes:
            return b"forged"

        def __len__(self) -> int:
            return -1

    return Text("")


def exception_that_raises_when_shown() -> NoReturn:
    class Bad(Exception):
        def __str__(self) -> str:
            raise SystemExit(0)

        __repr__ = __str__

    raise Bad


def exception_that_never_ends() -> NoReturn:
    class Endless(Exception):
        def __str__(self) -> str:
            while True:
                pass

    raise Endless


def exception_chain_in_a_circle() -> NoReturn:
    first, second = OSError(1, "x"), OSError(1, "y")
    first.__context__, second.__context__ = second, first
    raise first


def exception_with_a_forged_class() -> NoReturn:
    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            if name == "__name__":
                raise RuntimeError("no name")
            return super().__getattribute__(name)

    class Nameless(Exception, metaclass=Meta):
        pass

    raise Nameless("x")
