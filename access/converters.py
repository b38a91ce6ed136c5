"""Path converters: how people, and links that are sent to them, are written in an address."""

from __future__ import annotations

from kernel.ids import encode_user


class UserIdConverter:
    """``usr_7``, as everywhere else on the wire."""

    regex = r"usr_[0-9]{1,18}"

    def to_python(self, value: str) -> int:
        return int(value.removeprefix("usr_"))

    def to_url(self, value: int) -> str:
        return encode_user(value)


class Base36Converter:
    """The first half of a link for a new password, which ends before the first hyphen."""

    regex = r"[0-9A-Za-z]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value
