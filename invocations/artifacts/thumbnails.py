"""Thumbnails: what an image looks like in small.

Images come from tools, and decoders have had holes: one is read by a process of its own (:mod:`thumbnailer`), which has no
environment, cannot open a file or a connection, and may neither compute nor hold much. What comes back is a PNG or nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PATIENCE_S = 10
MAX_BYTES = 512 * 1024
_PROGRAM = Path(__file__).with_name("thumbnailer.py")
_PNG = b"\x89PNG\r\n\x1a\n"


class Thumbnail(NamedTuple):
    """``width`` and ``height`` are those of the image."""

    width: int
    height: int
    png: bytes


def make_thumbnail(image: bytes) -> Thumbnail | None:
    command = [sys.executable, "-I", "-B", str(_PROGRAM)]
    try:
        done = subprocess.run(command, input=image, capture_output=True, env={}, timeout=PATIENCE_S, check=True)
        size, _, png = done.stdout.partition(b"\n")
        width, height = map(int, size.split())
    except (subprocess.SubprocessError, OSError, ValueError):
        return None
    return Thumbnail(width, height, png) if png.startswith(_PNG) and len(png) <= MAX_BYTES else None
