"""Body parts: what the types of served bodies have in common."""

from __future__ import annotations

from typing import Any

from pydantic import model_validator
from pydantic.dataclasses import dataclass

from llm.documents import RULES


@dataclass(frozen=True, slots=True, config=RULES, kw_only=True)
class BodyPart:
    """An object in a body. What is null in it asks for nothing, as a parameter that is null does: SDKs send objects as they are."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, value: Any) -> Any:
        return {name: each for name, each in value.items() if each is not None} if isinstance(value, dict) else value
