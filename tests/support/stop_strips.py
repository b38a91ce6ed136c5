"""Stop strips: what a page says beside that something is stopped, which every page says."""

from __future__ import annotations

import re

STRIP = re.compile(r'<section class="stops".*?</section>', re.DOTALL)


def remove_stop_strip(text: str) -> str:
    return STRIP.sub("", text)
