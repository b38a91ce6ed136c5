"""GGUF files: tiny models of llama.cpp with weights by chance, for tests of what a file can do and of files that are broken.

The runtime really loads those of :func:`write_encoder`: a BERT of two layers that knows a few words and all letters.
"""

from __future__ import annotations

import random
import struct
from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MEAN, CLS, LAST, RANK = 1, 2, 3, 4
ALIGNMENT = 32
WIDTH, HEADS, INNER, LAYERS, CONTEXT = 32, 2, 64, 2, 64
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("paris", "berlin", "capital", "france", "germany", "banana", "yellow", "the", "is", "of", "what", "text")
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789?.,"
TOKENS = (*SPECIAL, *(f"\u2581{word}" for word in (*WORDS, *LETTERS)), *LETTERS)

Shape = tuple[int, ...]


def _pack_text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _pack_value(value: Any) -> bytes:
    """With the number of its type before it, as GGUF has them."""
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + _pack_text(value)
        case [str(), *_]:
            return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_pack_text, value))
    return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)


def write_gguf(file: Path, metadata: Mapping[str, Any], tensors: Sequence[tuple[str, Shape, bytes]] = ()) -> Path:
    """A file of version 3. Tensors are of 32-bit numbers."""
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        head += _pack_text(key) + _pack_value(value)
    body = b""
    for name, shape, data in tensors:
        head += _pack_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(body))
        body += data + bytes(-len(data) % ALIGNMENT)
    file.write_bytes(head + bytes(-len(head) % ALIGNMENT) + body)
    return file


def write_encoder(file: Path, *, pooling: int | None = MEAN, labels: int = 0, seed: int = 1, **metadata: Any) -> Path:
    """A model that the runtime loads. ``labels``: it has a classifier's head, as models that order texts do."""
    chance = random.Random(seed)

    def draw(*shape: int, around: float = 0.0) -> tuple[Shape, bytes]:
        count = 1
        for each in shape:
            count *= each
        return shape, array(
            "f", (chance.gauss(around, 0.3 if len(shape) > 1 else 0.02) for _ in range(count))
        ).tobytes()

    parts: dict[str, tuple[Shape, bytes]] = {
        "token_embd.weight": draw(WIDTH, len(TOKENS)),
        "token_types.weight": draw(WIDTH, 2),
        "position_embd.weight": draw(WIDTH, CONTEXT),
    }
    pairs: dict[str, Shape] = {"token_embd_norm": (WIDTH,)}
    for layer in range(LAYERS):
        inside = f"blk.{layer}."
        pairs |= {f"{inside}attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        pairs |= {f"{inside}{part}": (WIDTH,) for part in ("attn_output_norm", "layer_output_norm")}
        pairs |= {f"{inside}ffn_up": (WIDTH, INNER), f"{inside}ffn_down": (INNER, WIDTH)}
    if labels:
        pairs |= {"cls": (WIDTH, WIDTH), "cls.output": (WIDTH, labels)}
    for name, shape in pairs.items():
        parts[f"{name}.weight"] = draw(*shape, around=1.0 if len(shape) == 1 else 0.0)
        parts[f"{name}.bias"] = draw(shape[-1])
    said: dict[str, Any] = {
        "general.architecture": "bert",
        "general.name": file.stem,
        "bert.block_count": LAYERS,
        "bert.context_length": CONTEXT,
        "bert.embedding_length": WIDTH,
        "bert.feed_forward_length": INNER,
        "bert.attention.head_count": HEADS,
        "bert.attention.layer_norm_epsilon": 1e-12,
        "bert.attention.causal": False,
        **({} if pooling is None else {"bert.pooling_type": pooling}),
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": list(TOKENS),
        "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
        **{
            f"tokenizer.ggml.{name}_token_id": SPECIAL.index(token)
            for name, token in (
                ("bos", "[CLS]"),
                ("cls", "[CLS]"),
                ("eos", "[SEP]"),
                ("seperator", "[SEP]"),
                ("unknown", "[UNK]"),
                ("padding", "[PAD]"),
                ("mask", "[MASK]"),
            )
        },
        **metadata,
    }
    return write_gguf(file, said, [(name, *part) for name, part in parts.items()])
