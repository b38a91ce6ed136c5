"""Every page: what must hold of each page of a tenant that has one of everything, in whichever way somebody looks at it?"""

from __future__ import annotations

import gzip
import os
import re
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from playwright.sync_api import Error

from access.roles import HUB_OWNERS, Role
from kernel.http.assets import load_assets
from tests.conftest import make_person
from tests.e2e.browser import Variant, Visitor, chromium
from tests.support.mcp_clients import web_server
from tests.support.populated_tenant import Things, make_publisher, make_things
from tests.support.routes import console_routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

    from tests.support.calls import Bell

FIRST_BYTES, LATER_BYTES = 150_000, 40_000  # over the wire
HEADERS_BYTES = 1_500  # of one answer, at most
CHINESE, LETTERS = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[A-Za-z]{2}")
# A sentence, or some words of one: what stands on a Chinese page in English. Names, ids and codes are single words.
ENGLISH = re.compile(r"^[A-Z][a-z']+(?: [a-z'-]+){2,}.*|.*[a-z]{2}\.$")
# Nothing that this product says: names that a test or somebody else has given, and the document of the API, which is in English.
NAMES = re.compile(r"anary|\b(for a test|for everybody|sample)\b")
IN_ENGLISH = {"api_reference", "sdk"}  # the document, and what packages say of themselves
VOID = {"br", "hr", "img", "input", "link", "meta", "wbr", "path", "rect", "circle", "line", "use", "col"}
CODE = {"code", "pre", "script", "style", "textarea", "kbd", "samp"}
# In which ways a page is looked at that was loaded once; 200 % on a window of 1280 pixels leaves a page 640.
WAYS = {
    "english": (
        Variant("light"),
        Variant("dark", dark=True),
        Variant("forced-colours", forced_colours=True),
        Variant("zoomed", width=640, height=450),
        Variant("narrow", width=390, height=844),
    ),
    "chinese": (
        Variant("chinese", language="zh-hans"),
        Variant("chinese-forced-colours", language="zh-hans", forced_colours=True),
        Variant("chinese-zoomed", language="zh-hans", width=640, height=450),
        Variant("chinese-dark-narrow", language="zh-hans", dark=True, width=390, height=844),
    ),
    "without-scripts": (
        Variant("without-scripts", scripts=False),
        Variant("without-scripts-narrow", width=390, height=844, scripts=False),
    ),
}


@pytest.fixture
def things(bell: Bell) -> Things:
    make_publisher()
    return make_things("acme")


@pytest.fixture
def client(things: Things) -> Client:
    """Of somebody who may see every page."""
    person = make_person(things.tenant, "pat", *Role)
    person.user.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])
    return person.client()


def list_pages(things: Things) -> Iterator[tuple[str, str]]:
    """Names and addresses. Some addresses name what only a letter or another server gives: those pages have tests of their own."""
    for route in console_routes():
        try:
            url = things.url(route)
        except LookupError:
            continue
        if "GET" in route.methods or not route.methods:
            yield route.name, url


def read_page(answer: Any) -> str:
    """The text of a page of the console; empty for what is none: a redirection, a file, a fragment, an index for programs."""
    if answer.status_code == 302 or not answer.headers.get("Content-Type", "").startswith("text/html"):
        return ""
    content = gzip.decompress(answer.content) if "Content-Encoding" in answer.headers else answer.content
    return content.decode() if b'<main id="main"' in content else ""


class Words(HTMLParser):
    """What a page says, without codes and ids."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attributes}
        quiet = tag in CODE or not {"mono", "id", "json", "quote"}.isdisjoint(said.get("class", "").split())
        quiet = quiet or said.get("lang", "").startswith("en") or said.get("translate") == "no"
        if not self._is_quiet():
            self.found += [said[name] for name in ("aria-label", "title", "alt") if said.get(name)]
        if tag not in VOID:
            self._open.append((tag, quiet))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not self._is_quiet():
            self.found.append(" ".join(data.split()))

    def _is_quiet(self) -> bool:
        return any(quiet for _, quiet in self._open)


def find_english(page: str) -> set[str]:
    words = Words()
    words.feed(page.partition("<body")[2])
    return {each for each in words.found if ENGLISH.match(each) and not CHINESE.search(each) and not NAMES.search(each)}


def weigh_assets(page: str) -> int:
    """The bytes of all that a page names, as a browser gets them for the first time."""
    by_url = {f"{settings.STATIC_URL}{each.name}": each for each in load_assets().values()}
    named = {urlsplit(url).path for url in re.findall(r'(?:href|src)="(/static/[^"]+)"', page)}
    return sum(len(by_url[each].compressed or by_url[each].content) + HEADERS_BYTES for each in named)


@pytest.mark.django_db
@pytest.mark.req("CARD-3")
def test_every_page_is_light_on_the_wire_and_all_in_the_language_of_its_reader(things: Things, client: Client) -> None:
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "zh-hans"
    heavy, english, seen = {}, {}, 0

    for name, url in list_pages(things):
        answer = client.get(url, headers={"Accept-Encoding": "gzip"})
        page = read_page(answer)
        if not page:
            continue
        seen += 1
        sent = len(answer.content) + HEADERS_BYTES
        first = sent + weigh_assets(page)
        if sent > LATER_BYTES or first > FIRST_BYTES:
            heavy[name] = (first, sent)
        if name not in IN_ENGLISH and (found := find_english(page)):
            english[name] = found

    assert seen > 130
    assert heavy == {}
    assert english == {}


@pytest.mark.django_db
def test_a_page_is_compressed_for_who_takes_that_and_never_twice_of_one_length(client: Client) -> None:
    plain = client.get("/")
    small = [client.get("/", headers={"Accept-Encoding": "gzip"}) for _ in range(8)]

    assert "Content-Encoding" not in plain.headers
    assert {each.headers["Content-Encoding"] for each in small} == {"gzip"}
    assert len({len(each.content) for each in small}) > 1  # its length says nothing exactly
    assert all("Accept-Encoding" in each.headers["Vary"] for each in small)
    assert "Content-Encoding" not in client.get("/events/counts", headers={"Accept-Encoding": "gzip"}).headers


@pytest.mark.long  # minutes a language; the walks of tests/e2e look at the pages of jobs in every run
@pytest.mark.django_db(transaction=True)
@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("ways", WAYS.values(), ids=WAYS)
def test_every_page_is_sound_in_a_browser(
    things: Things, client: Client, ways: tuple[Variant, ...], tmp_path: Path
) -> None:
    """No finding of axe, nothing on the browser's console, nothing that the CSP forbids, no inline style, no sideways scroll."""
    pages = [(name, url) for name, url in list_pages(things) if read_page(client.get(url))]
    shots = Path(os.environ.get("TOOLHUB_TEST_SHOTS", tmp_path))
    shots.mkdir(parents=True, exist_ok=True)
    cookies = {
        settings.SESSION_COOKIE_NAME: client.cookies[settings.SESSION_COOKIE_NAME].value,
        settings.LANGUAGE_COOKIE_NAME: ways[0].language,
    }
    wrong = {}

    with web_server() as hub, contextmanager(chromium)() as browser, Visitor(browser, hub, ways[0], shots) as pat:
        pat.page.context.add_cookies([{"name": name, "value": value, "url": hub} for name, value in cookies.items()])
        for name, url in pages:
            pat.errors.clear()
            pat.look_as(ways[0])
            try:
                pat.page.goto(hub + url)
                pat.ready()
            except Error as error:
                wrong[name] = str(error)
                continue
            for way in ways:
                pat.look_as(way)
                try:
                    pat.check(name)
                except (AssertionError, Error) as error:
                    wrong[f"{way.name} {name}"] = str(error)

    assert len(pages) > 130
    assert wrong == {}
