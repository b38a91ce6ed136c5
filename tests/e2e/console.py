"""A browser without scripts: how does a person use the console with a browser that has no scripts and draws nothing?"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Self
from urllib.parse import urlencode

if TYPE_CHECKING:
    from types import TracebackType

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')


def read_token(page: str) -> str:
    """Of the forms in the text of a page."""
    found = _TOKEN.search(page)
    assert found, f"This page has no form:\n{page}"
    return found[1]


class Person:
    """Somebody who signs in, opens pages and sends the forms on them."""

    def __init__(self, url: str, name: str, password: str, cookies: CookieJar | None = None) -> None:
        self._url = url
        jar = CookieJar() if cookies is None else cookies
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        self.send("/sign-in", "/sign-in", username=name, password=password)
        status, page = self.open("/")
        assert status == 200, page
        assert "/sign-out" in page, f"{name} could not sign in"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opener.close()

    def open(self, path: str, data: dict[str, str] | None = None) -> tuple[int, str]:
        body = None if data is None else urlencode(data).encode()
        try:
            with self._opener.open(self._url + path, body, timeout=60) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def token(self, page: str) -> str:
        """Of the forms on ``page``."""
        status, text = self.open(page)
        assert status == 200, text
        return read_token(text)

    def send(self, page: str, path: str, **fields: str) -> str:
        """Send a form of ``page`` to ``path``; it must be accepted."""
        status, text = self.open(path, fields | {"csrfmiddlewaretoken": self.token(page)})
        assert status == 200, f"{path} answered {status}\n{text}"
        return text

    def decide(self, page: str, *, mode: str, reason: str) -> str:
        """Approve what ``page`` shows, as far as ``mode`` says."""
        return self.send(page, f"{page}/decision", mode=mode, reason=reason)
