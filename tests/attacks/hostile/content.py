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
