"""Thumbnailer: how one image is made small, by a process that can do nothing else.

Reads an image from stdin, writes its width and height and a PNG to stdout. A program, and nothing that the hub imports.
"""

from __future__ import annotations

import copy
import io
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from PIL import GifImagePlugin, Image, JpegImagePlugin, MpoImagePlugin, PngImagePlugin, WebPImagePlugin

from sandbox import confinement

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
MAX_PIXELS = 40_000_000
MAX_MEMORY = 1024 * 1024 * 1024  # of addresses
SIDE = 256
LOADED = (
    copy,
    GifImagePlugin,
    JpegImagePlugin,
    MpoImagePlugin,
    PngImagePlugin,
    WebPImagePlugin,
)  # while files can be read


def _confine() -> None:
    for kind, most in (
        (resource.RLIMIT_AS, MAX_MEMORY),
        (resource.RLIMIT_CPU, 5),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    confinement.forbid_new_privileges()
    if confinement.landlock_version():
        ground = confinement.LandlockRuleset()
        ground.begin()
        ground.confine()
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (0, 0)
    )  # what is open stays open, and nothing else is opened: no file, no connection


def main() -> None:
    data = sys.stdin.buffer.read()
    Image.init()
    _confine()
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise SystemExit(1)
        image.draft("RGB", (SIDE, SIDE))
        image.thumbnail((SIDE, SIDE))
        small = image.convert("RGBA" if "A" in image.getbands() or "transparency" in image.info else "RGB")
    made = io.BytesIO()
    Image.frombytes(small.mode, small.size, small.tobytes()).save(
        made, "PNG"
    )  # without what was written beside the pixels
    sys.stdout.buffer.write(f"{width} {height}\n".encode() + made.getvalue())


if __name__ == "__main__":
    main()
