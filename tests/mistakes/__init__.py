"""For every rule about a manifest: an example that breaks it, where it is found, and the same example mended."""

from __future__ import annotations

from tests.mistakes.asks import ASKS
from tests.mistakes.base import Mistake
from tests.mistakes.effects import EFFECTS
from tests.mistakes.operations import OPERATIONS
from tests.mistakes.origins import ORIGINS
from tests.mistakes.remotes import REMOTES
from tests.mistakes.running import ANSWERS, RUNNING
from tests.mistakes.schemas import DOCUMENT, SCHEMAS
from tests.mistakes.shapes import SHAPES
from tests.mistakes.texts import TEXTS

MISTAKES: dict[str, list[Mistake]] = (
    DOCUMENT | SCHEMAS | EFFECTS | ASKS | RUNNING | ANSWERS | ORIGINS | OPERATIONS | REMOTES | TEXTS
)

__all__ = ["MISTAKES", "SHAPES", "Mistake"]
