"""What does a model understand, as far as its name tells?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How a model is told of tools."""

    name: str
    capability: Literal["FC_NATIVE", "TEXT"]  # its API takes tools; or it only reads text
    dialects: tuple[str, ...]  # that its API speaks, the best first
    known: bool = True

    @classmethod
    def from_name(cls, name: str) -> ModelProfile:
        raise NotImplementedError
