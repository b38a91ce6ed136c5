"""Asset names: do style sheets and scripts reach a browser once, compressed, and never an old one after an upgrade?"""

from __future__ import annotations

import gzip
import hashlib
import re
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.test import Client

from kernel.http.assets import FOR_EVER, Asset, load_assets, takes_gzip

if TYPE_CHECKING:
    from tests.conftest import Person

HASHED = r"/static/ui/(?:fonts/)?[\w-]+\.[0-9a-f]{12}\.(?:css|js|svg|woff2)"


@pytest.mark.django_db
def test_every_file_that_a_page_names_is_there_for_a_year_under_the_hash_of_its_content(operator: Person) -> None:
    page = operator.client().get("/").content.decode()
    named = set(re.findall(r'(?:href|src)="(/static/[^"#]+)', page))

    assert {name.rpartition(".")[2] for name in named} == {"css", "js", "svg", "woff2"}
    for name in named:
        assert re.fullmatch(HASHED, name), name
        answer = Client().get(name)
        assert (answer.status_code, answer.headers["Cache-Control"]) == (200, FOR_EVER)
        assert hashlib.sha256(answer.content).hexdigest()[:12] in name


@pytest.mark.parametrize("name", ["ui/app.css", "ui/app.js", "ui/icons.svg", "ui/favicon.svg"])
def test_text_goes_out_compressed_to_who_takes_that(name: str) -> None:
    url = f"/static/{load_assets()[name].name}"

    plain = Client().get(url)
    small = Client().get(url, headers={"Accept-Encoding": "br;q=1.0, gzip;q=0.8"})

    assert "Content-Encoding" not in plain.headers
    assert small.headers["Content-Encoding"] == "gzip"
    assert small.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(small.content) == plain.content
    assert int(small.headers["Content-Length"]) == len(small.content) < len(plain.content)
    assert small.headers["Content-Type"] == plain.headers["Content-Type"]


def test_a_style_sheet_names_its_fonts_by_their_hashes() -> None:
    sheet = load_assets()["ui/app.css"].content.decode()

    fonts = re.findall(r"url\((fonts/[^)]+)\)", sheet)

    assert len(fonts) == 2
    for font in fonts:
        assert Client().get(f"/static/ui/{font}").headers["Cache-Control"] == FOR_EVER


def test_a_changed_file_gets_another_name_and_one_that_a_browser_has_is_not_sent_again() -> None:
    assert Asset.of("ui/a.css", b"a").name != Asset.of("ui/a.css", b"b").name
    url = f"/static/{load_assets()['ui/app.js'].name}"
    first = Client().get(url)

    again = Client().get(url, headers={"If-None-Match": first.headers["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert Client().head(url).content == b""
    assert Client().post(url).status_code == 405


def test_the_files_as_they_were_built_are_still_there_and_asked_for_again_soon() -> None:
    answer = Client().get("/static/ui/app.js")

    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == f"max-age={settings.WHITENOISE_MAX_AGE}, public"


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ("gzip", True),
        ("gzip, deflate, br", True),
        ("*", True),
        ("GZIP;q=0.5", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("identity, x-gzipped", False),
    ],
)
def test_who_takes_compressed_bytes(accepted: str, taken: bool) -> None:
    assert takes_gzip(accepted) is taken
