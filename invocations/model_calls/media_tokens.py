"""Media tokens: what a picture or a sound is estimated at among the input, by the formulas that providers publish.

The most that any model of the kind counts; of a kind that is not known the most of all. A provider that scales a picture down first
counts less than what was sent would be.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from llm.messages import AudioRef, ImageRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm.messages import AttachmentRef

# OpenAI. In tiles of 512 pixels, after scaling into 2048 by 2048 and to a shorter side of 768; small models count more a tile, and
# newer ones patches of 32 pixels, up to 1536 of them, each as several tokens.
TILE, BASE_TOKENS, TILE_TOKENS = 512, 85, 170
MINI, MINI_BASE_TOKENS, MINI_TILE_TOKENS = "gpt-4o-mini", 2833, 5667
PATCH, MOST_PATCHES, TOKENS_A_PATCH = 32, 1536, 2.46
# Anthropic. A token for 750 pixels; larger pictures are scaled down.
PIXELS_A_TOKEN, MOST_OF_ANTHROPIC = 750, 4784
# Gemini. 258 for each tile of a picture, which is as large as two thirds of its shorter side, from 256 to 768 pixels; at least as
# many as newer models take for any.
GEMINI_TILE_TOKENS, LEAST_OF_GEMINI = 258, 1120
OPENAI_A_SECOND, GEMINI_A_SECOND = 10, 32
OF_A_FILE = 3000  # another file: nobody says before it is read


def count_openai_tiles(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return math.ceil(width * scale / TILE) * math.ceil(height * scale / TILE)


def count_openai_picture(width: int, height: int) -> int:
    patches = min(MOST_PATCHES, math.ceil(width / PATCH) * math.ceil(height / PATCH))
    return max(BASE_TOKENS + TILE_TOKENS * count_openai_tiles(width, height), math.ceil(patches * TOKENS_A_PATCH))


def count_anthropic_picture(width: int, height: int) -> int:
    return min(MOST_OF_ANTHROPIC, math.ceil(width * height / PIXELS_A_TOKEN))


def count_gemini_picture(width: int, height: int) -> int:
    unit = min(768, max(256, int(min(width, height) / 1.5)))
    return max(LEAST_OF_GEMINI, GEMINI_TILE_TOKENS * math.ceil(width / unit) * math.ceil(height / unit))


PICTURES: dict[str, Callable[[int, int], int]] = {
    "openai": count_openai_picture,
    "openai_responses": count_openai_picture,
    "anthropic": count_anthropic_picture,
    "gemini": count_gemini_picture,
}
SECONDS = {"openai": OPENAI_A_SECOND, "openai_responses": OPENAI_A_SECOND, "gemini": GEMINI_A_SECOND}


def estimate_media(segment: ImageRef | AudioRef | AttachmentRef, *, kind: str, model: str) -> int:
    """``kind``: of the provider; ``model``: its own name of the model."""
    if isinstance(segment, ImageRef):
        if MINI in model:
            return MINI_BASE_TOKENS + MINI_TILE_TOKENS * count_openai_tiles(segment.width, segment.height)
        formulas = [PICTURES[kind]] if kind in PICTURES else list(PICTURES.values())
        return max(count(segment.width, segment.height) for count in formulas)
    if isinstance(segment, AudioRef):
        return math.ceil(segment.seconds * SECONDS.get(kind, GEMINI_A_SECOND))
    return OF_A_FILE
