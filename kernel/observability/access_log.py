"""Access log: what is written down of the address that a request was for.

Neither its query, which may hold what stands for a key, nor any word in its path that is the caller's own: those that the hub's
addresses are made of, ids and names of tools are kept, of anything else three dots.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from django.urls import URLResolver, get_resolver

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_UVICORN = "uvicorn.access"
_PATH = 2  # client, method, path with query, version, status
_OF_DJANGO = 1  # what became of it, path
_OURS = re.compile(r"[a-z]{3}_[0-9a-z]{26}|[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){1,5}|v\d+|")
_LITERAL = re.compile(r"<[^>]*>|\(\?P<[^)]*\)")


@cache
def _known_segments() -> frozenset[str]:
    """What stands in the hub's addresses themselves."""

    def of(resolver: URLResolver) -> Iterator[str]:
        for each in resolver.url_patterns:
            yield from _LITERAL.sub("", str(each.pattern)).strip("^$").split("/")
            if isinstance(each, URLResolver):
                yield from of(each)

    return frozenset(of(get_resolver()))


def mask_path(address: str) -> str:
    path = address.partition("?")[0]
    if path.startswith("/static/"):
        return path
    kept = (each if each in _known_segments() or _OURS.fullmatch(each) else "…" for each in path.split("/"))
    return "/".join(kept)


class PathMaskFilter(logging.Filter):
    def __init__(self, place: int = _OF_DJANGO) -> None:
        super().__init__()
        self.place = place

    def filter(self, record: logging.LogRecord) -> bool:
        args: Any = record.args
        if isinstance(args, tuple) and len(args) > self.place and str(args[self.place]).startswith("/"):
            record.args = (*args[: self.place], mask_path(str(args[self.place])), *args[self.place + 1 :])
        return True


def install_path_mask() -> None:
    logging.getLogger(OF_UVICORN).addFilter(PathMaskFilter(_PATH))
