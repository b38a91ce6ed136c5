"""Assets: how static files reach a browser.

WhiteNoise finds the file and says its headers, but answers with an open file, which Django's ASGI handler takes apart with a
warning, since its chunks do not come by themselves. These files are small: here their bytes are the answer.

Pages name each file with a hash of its content, under which it is kept for a year and sent compressed. Names and compressed bytes
are made when a process first needs them, in a few milliseconds, so that there is no step of a build or an installation to forget.
"""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest

FOR_EVER = "max-age=31536000, public, immutable"
DIGITS = 12
COMPRESSED = {"text/css", "text/javascript", "application/javascript", "image/svg+xml"}
_URL = re.compile(rb"""url\((["']?)([^)"':]+)\1\)""")
_FIRST = re.compile(r"[\w*.-]+")


@dataclass(frozen=True)
class Asset:
    """One file under the name that its content gives it; answers as WhiteNoise's own files do."""

    name: str  # below the static root, with the hash
    content: bytes
    compressed: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        path, digest = PurePosixPath(name), hashlib.sha256(content).hexdigest()[:DIGITS]
        small = gzip.compress(content, 9, mtime=0) if guess_media_type(name) in COMPRESSED else None
        return cls(str(path.with_name(f"{path.stem}.{digest}{path.suffix}")), content, small)

    def get_response(self, method: str, environ: Mapping[str, str]) -> Response:
        if method not in ("GET", "HEAD"):
            return Response(HTTPStatus.METHOD_NOT_ALLOWED, [("Allow", "GET, HEAD")], None)
        headers = [("Cache-Control", FOR_EVER), ("ETag", f'"{PurePosixPath(self.name).name}"')]
        if self.compressed is not None:
            headers.append(("Vary", "Accept-Encoding"))
        if environ.get("HTTP_IF_NONE_MATCH") == headers[1][1]:
            return Response(HTTPStatus.NOT_MODIFIED, headers, None)
        content = self.content
        if self.compressed is not None and takes_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
            content = self.compressed
            headers.append(("Content-Encoding", "gzip"))
        media_type = guess_media_type(self.name)
        text = media_type.startswith("text/") or media_type in COMPRESSED
        headers.append(("Content-Type", f'{media_type}; charset="utf-8"' if text else media_type))
        headers.append(("Content-Length", str(len(content))))
        return Response(HTTPStatus.OK, headers, BytesIO(content) if method == "GET" else None)


def guess_media_type(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def takes_gzip(accepted: str) -> bool:
    """By the words of RFC 9110; a weight of nothing is a no."""
    words = (each.strip().lower() for each in accepted.split(","))
    return any(
        (found := _FIRST.match(word)) is not None
        and found[0] in ("gzip", "*")
        and not re.search(r";\s*q=0(\.0*)?$", word)
        for word in words
    )


@cache
def load_assets() -> dict[str, Asset]:
    """All of them, by the name that templates know. Style sheets come last: they name others, by their hashes."""
    root = Path(settings.STATIC_ROOT)
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    found: dict[str, Asset] = {}
    for name in sorted(names, key=lambda name: name.endswith(".css")):
        content = (root / name).read_bytes()
        if name.endswith(".css"):
            content = _URL.sub(lambda match, at=name: _hashed_url(match, at, found), content)  # type: ignore[misc]
        found[name] = Asset.of(name, content)
    return found


def _hashed_url(match: re.Match[bytes], sheet: str, found: dict[str, Asset]) -> bytes:
    """A file beside the style sheet; what is none is left as it is."""
    folder = PurePosixPath(sheet).parent
    asset = found.get(str(folder / match[2].decode()))
    return match[0] if asset is None else f"url({PurePosixPath(asset.name).relative_to(folder)})".encode()


class HashedNames(StaticFilesStorage):
    """What ``{% static %}`` asks."""

    def url(self, name: str | None) -> str:
        asset = load_assets().get(name or "")
        return super().url(asset.name if asset else name)


class Assets(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.files |= {f"{settings.STATIC_URL}{asset.name}": asset for asset in load_assets().values()}

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
