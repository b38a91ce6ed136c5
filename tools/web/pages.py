"""Pages: what a page looks like."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from unitools import browser, runtime

MAX_PICTURE_BYTES = 700_000  # as base64 it must fit into an answer
SETTLE_MS = 10_000


def render_png(url: str, width: int = 1024, height: int = 768) -> dict[str, Any]:
    """A picture of the visible part of a page, after its scripts have had their time."""
    with browser.opened_page(width=width, height=height) as page:
        runtime.progress(0.2, "The browser is there")
        status = browser.go(page, url)
        runtime.progress(0.6, "The page is there")
        browser.settle(page, SETTLE_MS)
        picture = page.screenshot(animations="disabled")
        title, shown = page.title(), page.url
    if len(picture) > MAX_PICTURE_BYTES:
        raise runtime.InvalidArgument(
            f"The picture has {len(picture):,} bytes, {MAX_PICTURE_BYTES:,} are allowed. Ask for a smaller one.",
            bytes=len(picture),
        )
    return {
        "url": shown[:2000],
        "status": status,
        "title": title[:300],
        "width": width,
        "height": height,
        "bytes": len(picture),
        "sha256": hashlib.sha256(picture).hexdigest(),
        "png_base64": base64.b64encode(picture).decode(),
    }
