"""Sdk: the wheels that belong to this hub, as a package index (PEP 503) and as a page for people.

Authors and auditors install from here and from nowhere else: on PyPI other people own ``unitools`` and ``toolhub``, and anybody may
take a name that is free there today. So the index answers for every package. Ours it has; a name that begins like ours is never
looked for elsewhere; any other it sends on, to PyPI or to the index that TOOLHUB_SDK_INDEX names. With it as the only index
(``--index-url``) nobody can slip in a package of our name. The index that the hub itself installs from may hold a token anywhere in
its address, so nobody is sent there.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_safe
from packaging.utils import canonicalize_name

from kernel.http.console import public, render_page
from kernel.problems import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PYPI = "https://pypi.org/simple"
OURS = re.compile(r"(toolhub|unitools)(-.*)?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")  # normalised


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file, and what its metadata says. ``sha256`` is in hexadecimal digits."""

    path: Path
    name: str
    version: str
    summary: str
    requires_python: str
    sha256: str


@lru_cache(maxsize=64)
def _read(path: Path, changed_ns: int) -> Wheel:
    """``changed_ns``: the wheels are built anew where the sources change."""
    del changed_ns
    with zipfile.ZipFile(path) as archive:
        info = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = HeaderParser().parsestr(archive.read(info).decode())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(path, said["Name"], said["Version"], said["Summary"], said["Requires-Python"], digest)


def list_wheels() -> list[Wheel]:
    """Those that were built where the hub was set up (scripts/provision/wheels.py); none: nobody did."""
    folder = settings.BASE_DIR / "packaging" / "wheels"
    return [_read(path, path.stat().st_mtime_ns) for path in sorted(folder.glob("*.whl"))]


def find_other_index() -> str:
    """Where every other package comes from; empty: nowhere, since names of an index of one's own are others at PyPI."""
    named: str = settings.TOOLHUB_SDK_INDEX or ("" if settings.TOOLHUB_PACKAGE_INDEX else PYPI)
    return named.rstrip("/")


@require_safe
@public
def sdk_index(request: HttpRequest) -> HttpResponse:
    """All projects, for programs; for people, how to install them. Context: wheels, index (its address), sends_on."""
    if "application/vnd.pypi.simple" in request.headers.get("Accept", ""):
        return _page((wheel.name, reverse("sdk_project", args=[wheel.name]), "") for wheel in list_wheels())
    address = settings.TOOLHUB_PUBLIC_URL.rstrip("/") + reverse("sdk")
    context = {"section": "api", "wheels": list_wheels(), "index": address, "sends_on": bool(find_other_index())}
    return render_page(request, "sdk.html", context)


@require_safe
@public
def sdk_project(request: HttpRequest, name: str) -> HttpResponse:
    """The files of one project; for a project of others, the way to its index."""
    del request
    wanted = canonicalize_name(name)
    if name != wanted and _NAME.fullmatch(wanted):
        return HttpResponseRedirect(reverse("sdk_project", args=[wanted]))
    found = [wheel for wheel in list_wheels() if wheel.name == wanted]
    if found:
        return _page(
            (
                wheel.path.name,
                f"{reverse('sdk_file', args=[wheel.path.name])}#sha256={wheel.sha256}",
                wheel.requires_python,
            )
            for wheel in found
        )
    if OURS.fullmatch(wanted) or not _NAME.fullmatch(wanted):
        raise NotFound(
            f"This hub has no package {wanted[:100]}, and names like its own are looked for nowhere else.",
            remedy="Install toolhub-unitools (it is imported as unitools) or toolhub-verify.",
        )
    if not (others := find_other_index()):
        raise NotFound(
            "This hub installs from an index of its own, which it tells nobody, so it sends nobody to PyPI either.",
            remedy="Install the package from your own index first; or an operator names one for everybody in TOOLHUB_SDK_INDEX.",
        )
    return HttpResponseRedirect(f"{others}/{wanted}/")


@require_safe
@public
def sdk_file(request: HttpRequest, name: str) -> HttpResponse:
    """One wheel. The same name has other bytes after an upgrade, so nobody keeps it without asking."""
    del request
    found = next((wheel for wheel in list_wheels() if wheel.path.name == name), None)
    if found is None:
        raise NotFound("This hub has no such file.", remedy="See the list of all at /sdk/.")
    headers = {"Cache-Control": "no-cache", "Content-Disposition": f'attachment; filename="{found.path.name}"'}
    return HttpResponse(found.path.read_bytes(), content_type="application/octet-stream", headers=headers)


def _page(links: Iterable[tuple[str, str, str]]) -> HttpResponse:
    """PEP 503: an anchor for each text, address and, where there is one, range of Pythons."""
    anchors = format_html_join(
        "\n",
        '<a href="{}"{}>{}</a><br>',
        (
            (url, format_html(' data-requires-python="{}"', python) if python else "", text)
            for text, url, python in links
        ),
    )
    head = '<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0"><title>toolhub</title></head>'
    return HttpResponse(format_html(head + "<body>\n{}\n</body></html>", anchors), content_type="text/html")
