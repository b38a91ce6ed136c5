"""How does a person stand in an address? As ``usr_7``, as everywhere else on the wire."""

from __future__ import annotations


class UserIdConverter:
    regex = r"usr_[0-9]{1,18}"

    def to_python(self, value: str) -> int:
        return int(value.removeprefix("usr_"))

    def to_url(self, value: int) -> str:
        return f"usr_{value}"
