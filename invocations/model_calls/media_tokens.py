"""Media tokens: what a picture or a sound is estimated at among the input, by the formulas that providers publish.

The most that any model counts of which no more is known than its kind and its name; of a kind that is not known the most of all. A
provider that scales a picture down first counts less than what was sent would be. Looked up in November 2026; where a page and what
people measured differ, the higher figure stands here.

- OpenAI, tiles (GPT-4o, GPT-4.1, GPT-5, o1, o3): https://platform.openai.com/docs/guides/images-vision, as its mirror at
  https://openai-hd4n6.mintlify.app/docs/guides/images has it; patches of small models: the same, and measured at
  https://community.openai.com/t/1377015. Newer models take 1.2 tokens a patch and, where no `detail` is asked for, hardly scale down:
  14,364 for a photo of 4032 by 3024 (https://huggingface.co/datasets/JOHNISKING/image-token-cost).
- Anthropic: https://platform.claude.com/docs/en/build-with-claude/vision: patches of 28 pixels, 4784 of them at most; a token for 750
  pixels in its older version, which is more for some sizes and less for others.
- Gemini: https://geminibyexample.com/027-calculate-input-tokens, after https://ai.google.dev/gemini-api/docs/tokens: 258 a tile; and
  https://ai.google.dev/gemini-api/docs/interactions/media-resolution: 1120 at the most for any picture from Gemini 3 on, as is usual.
- Qwen, which many servers of one's own have: https://huggingface.co/Qwen/Qwen2-VL-7B-Instruct: patches of 28 pixels, up to 16,384.
- Sounds: https://developers.openai.com/api/docs/guides/realtime-costs: a token for 100 ms of a user's; Gemini's page of tokens: 32 a
  second.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from llm.messages import AudioRef, ImageRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from llm.messages import AttachmentRef

# OpenAI. In tiles of 512 pixels, after scaling into 2048 by 2048 and to a shorter side of 768.
TILE, BASE_TOKENS, TILE_TOKENS = 512, 85, 170
MINI, MINI_BASE_TOKENS, MINI_TILE_TOKENS = "gpt-4o-mini", 2833, 5667
TILED = re.compile(r"gpt-4|chatgpt-4|gpt-5(?:\.1)?(?:-|$)|o[13](?:-|$)|computer-use")
# Or in patches of 32 pixels, each as more than one token.
PATCH = 32
SMALL = re.compile(r"(?:gpt-4\.1|gpt-5(?:\.\d)?)-(?:mini|nano)|o\d-mini|codex-mini")
MOST_PATCHES, TOKENS_A_SMALL_PATCH = 1536, 2.46
TOKENS_A_PATCH = 1.2
PIXELS_A_TOKEN, ANTHROPIC_PATCH, MOST_OF_ANTHROPIC = 750, 28, 4784
# Gemini. A tile is as large as two thirds of the picture's shorter side, from 256 to 768 pixels.
GEMINI_TILE_TOKENS, LEAST_OF_GEMINI = 258, 1120
QWEN_PATCH, MOST_OF_QWEN = 28, 16_384
OPENAI_A_SECOND, GEMINI_A_SECOND = 10, 32
OF_A_FILE = 3000  # another file: nobody says before it is read


def count_patches(width: int, height: int, side: int) -> int:
    return math.ceil(width / side) * math.ceil(height / side)


def count_openai_tiles(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return math.ceil(width * scale / TILE) * math.ceil(height * scale / TILE)


def count_openai_picture(width: int, height: int, model: str) -> int:
    tiles, patches = count_openai_tiles(width, height), count_patches(width, height, PATCH)
    tiled = BASE_TOKENS + TILE_TOKENS * tiles
    small = math.ceil(min(MOST_PATCHES, patches) * TOKENS_A_SMALL_PATCH)
    if MINI in model:
        return MINI_BASE_TOKENS + MINI_TILE_TOKENS * tiles
    if SMALL.match(model):
        return small
    return tiled if TILED.match(model) else max(tiled, small, math.ceil(patches * TOKENS_A_PATCH))


def count_anthropic_picture(width: int, height: int, _: str) -> int:
    most = max(math.ceil(width * height / PIXELS_A_TOKEN), count_patches(width, height, ANTHROPIC_PATCH))
    return min(MOST_OF_ANTHROPIC, most)


def count_gemini_picture(width: int, height: int, _: str) -> int:
    unit = min(768, max(256, int(min(width, height) / 1.5)))
    return max(LEAST_OF_GEMINI, GEMINI_TILE_TOKENS * math.ceil(width / unit) * math.ceil(height / unit))


def count_qwen_picture(width: int, height: int, _: str) -> int:
    return min(MOST_OF_QWEN, count_patches(width, height, QWEN_PATCH))


PICTURES: dict[str, Callable[[int, int, str], int]] = {
    "openai": count_openai_picture,
    "openai_responses": count_openai_picture,
    "anthropic": count_anthropic_picture,
    "gemini": count_gemini_picture,
}
ALL_PICTURES = (*PICTURES.values(), count_qwen_picture)
SECONDS = {"openai": OPENAI_A_SECOND, "openai_responses": OPENAI_A_SECOND, "gemini": GEMINI_A_SECOND}


def estimate_media(segment: ImageRef | AudioRef | AttachmentRef, *, kind: str, model: str) -> int:
    """``kind``: of the provider; ``model``: its own name of the model."""
    if isinstance(segment, ImageRef):
        formulas = [PICTURES[kind]] if kind in PICTURES else ALL_PICTURES
        return max(count(segment.width, segment.height, model) for count in formulas)
    if isinstance(segment, AudioRef):
        return math.ceil(segment.seconds * SECONDS.get(kind, GEMINI_A_SECOND))
    return OF_A_FILE
