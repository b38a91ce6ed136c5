"""Hub clients of the demonstration: an agent with its key over REST, and a person at the console.

The standard library, and the SDK's reader of events. A hub that is not there is :class:`HubUnreachable`; one that answers something
else than the story says, :class:`StoryBroken`.
"""

from __future__ import annotations

import html
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import closing, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING, Any

from unitools.server_sent_events import EventReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from email.message import Message
    from http.client import HTTPResponse

WAIT_S = 70
MAX_EVENT = 1024 * 1024  # characters
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')

Json = dict[str, Any]


class HubUnreachable(Exception):
    """There is no hub to tell the story with. The message says what to do."""


class StoryBroken(Exception):
    """The hub answered, but not what the story says."""


@dataclass(frozen=True, slots=True)
class HubAnswer:
    status: int
    headers: dict[str, str]
    body: Json
    ms: float

    @property
    def reason(self) -> str:
        return str((self.body.get("error") or {}).get("reason", ""))

    @property
    def call_id(self) -> str:
        return str(self.body["call"]["call_id"])


def _opener(base: str, *handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """A hub on this machine is never asked for through a proxy."""
    local = urllib.parse.urlsplit(base).hostname in ("127.0.0.1", "localhost", "::1", "0.0.0.0")
    return urllib.request.build_opener(*handlers, *([urllib.request.ProxyHandler({})] if local else []))


def _lowered(headers: Message) -> dict[str, str]:
    """Servers write the names of headers as they like."""
    return {name.lower(): value for name, value in headers.items()}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: dict[str, str]
    body: bytes
    url: str  # where redirections have led to


def _open(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> HttpAnswer:
    try:
        with opener.open(request, timeout=WAIT_S) as response:
            return HttpAnswer(response.status, _lowered(response.headers), response.read(), response.url)
    except urllib.error.HTTPError as error:
        with error:
            return HttpAnswer(error.code, _lowered(error.headers), error.read(), request.full_url)
    except (urllib.error.URLError, OSError) as error:
        raise HubUnreachable(f"No hub answers at {request.full_url}: {error}. Start one with `make run`.") from error


def _open_stream(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> HTTPResponse:
    try:
        response: HTTPResponse = opener.open(request, timeout=WAIT_S)
    except urllib.error.HTTPError as error:
        with error:
            raise StoryBroken(f"{request.full_url} answered {error.code}.") from error
    except (urllib.error.URLError, OSError) as error:
        raise HubUnreachable(f"No hub answers at {request.full_url} any more: {error}.") from error
    if response.status != 200:
        response.close()
        raise StoryBroken(f"{request.full_url} answered {response.status}: its end was told already.")
    return response


class DemoAgent:
    """The REST API with the key of the agent ``name``."""

    def __init__(self, base: str, key: str, name: str) -> None:
        self.base, self.name, self._key, self._count = base, name, key, 0
        self._run = f"demo-{time.time_ns() // 1_000_000:x}"
        self._opener = _opener(base)

    def ask(self, method: str, path: str, body: Json | None = None, headers: dict[str, str] | None = None) -> HubAnswer:
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"} | (headers or {})
        data = None if body is None else json.dumps(body).encode()
        begun = time.perf_counter()
        got = _open(self._opener, urllib.request.Request(self.base + path, data=data, headers=sent, method=method))
        ms = (time.perf_counter() - begun) * 1000
        try:
            return HubAnswer(got.status, got.headers, json.loads(got.body), ms)
        except ValueError as error:
            raise StoryBroken(f"{method} {path} answered {got.status} with something that is not JSON.") from error

    def follow(self, path: str) -> Iterator[tuple[str, Json]]:
        """Server-sent events, up to the one that is called `end`. Where the connection breaks off, it goes on after the last."""
        last = kind = ""
        while kind != "end":
            headers = {"Authorization": f"Bearer {self._key}"} | ({"Last-Event-ID": last} if last else {})
            request = urllib.request.Request(self.base + path, headers=headers)
            reader = EventReader(max_chars=MAX_EVENT)
            with closing(_open_stream(self._opener, request)) as lines, suppress(OSError):
                for event in (each for line in lines for each in reader.read(line)):
                    last, kind = event.id or last, event.kind
                    yield event.kind, json.loads(event.data)

    def envelope(self, arguments: Json) -> Json:
        self._count += 1
        actor = {"type": "agent", "id": self.name}
        return {
            "request_id": f"{self._run}-{self._count}",
            "actor": actor,
            "currency": "EUR",
            "arguments": arguments,
        }

    def call(self, tool: str, arguments: Json, *, key: str = "") -> HubAnswer:
        headers = {"Idempotency-Key": key} if key else {}
        return self.ask("POST", f"/api/v1/tools/{tool}/invoke", self.envelope(arguments), headers)


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """``path``: where it stands, which after a form may be elsewhere."""

    path: str
    text: str


class DemoPerson:
    """The console in a browser without JavaScript: cookies, forms, CSRF tokens."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._opener = _opener(base, urllib.request.HTTPCookieProcessor(CookieJar()))

    def load(self, path: str) -> bytes:
        got = _open(self._opener, urllib.request.Request(self._base + path))
        if got.status != 200:
            raise StoryBroken(f"The console answered {got.status} for {path}.")
        return got.body

    def read(self, path: str) -> ConsolePage:
        return ConsolePage(path, self.load(path).decode())

    def submit(self, page: str, action: str, fields: Mapping[str, str | Sequence[str]]) -> ConsolePage:
        """Open ``page`` and send its form to ``action``; returns the page that this leads to."""
        token = TOKEN.search(self.read(page).text)
        if token is None:
            raise StoryBroken(f"The page {page} holds no form.")
        sent = {**fields, "csrfmiddlewaretoken": html.unescape(token[1])}
        data = urllib.parse.urlencode(sent, doseq=True).encode()
        request = urllib.request.Request(self._base + action, data=data, headers={"Referer": self._base + page})
        got = _open(self._opener, request)
        if got.status != 200:
            raise StoryBroken(f"The console answered {got.status} for the form at {page}.")
        return ConsolePage(urllib.parse.urlsplit(got.url).path, got.body.decode())

    def sign_in(self, name: str, password: str) -> None:
        self.submit("/sign-in", "/sign-in", {"username": name, "password": password})
