"""Browser: how a tool opens a page in the sandbox's browser.

For tools with the capability ``browser``; they run in an image that has Chromium and Playwright, whose ``Page`` this gives them.
What a page may load is what the capability ``net`` holds: everything goes through the sandbox's way out. ::

    from unitools import browser

    def run(url):
        with browser.opened_page(width=1024, height=768) as page:
            status = browser.go(page, url)
            return {"status": status, "title": page.title()}

Outside a sandbox the Chromium of the machine is used, so a tool can be tried where it is written.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from playwright.sync_api import Error, TimeoutError, sync_playwright  # noqa: A004 - its names

from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

__all__ = ["go", "opened_page", "settle"]

CHROMIUM = "/usr/lib/chromium/chromium-headless-shell"  # in the box
CERTUTIL = "/usr/bin/certutil"
PUBLIC_ROOTS = Path("/etc/ssl/certs/ca-certificates.crt")
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - of the box
ARGUMENTS = (
    "--no-sandbox",  # the box is the sandbox: its own would need the namespaces that the box takes away
    "--no-zygote",
    "--disable-gpu",
    "--disable-quic",
    "--disable-breakpad",
    "--disable-sync",
)
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_NO_TUNNEL = "net::ERR_TUNNEL_CONNECTION_FAILED"
_NET_ERROR = re.compile(r"net::(ERR_[A-Z_0-9]+)")
_ASK_S = 10


@contextmanager
def opened_page(*, width: int = 1280, height: int = 720) -> Iterator[Page]:
    """An empty page of this size, in a browser that is closed at the end of the ``with`` block."""
    call = runtime.current_call()
    proxy = os.environ.get("https_proxy")
    _trust(os.environ.get("SSL_CERT_FILE", ""))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM if Path(CHROMIUM).exists() else shutil.which("chromium"),
            args=ARGUMENTS,
            ignore_default_args=["--disable-dev-shm-usage"] if os.access(SHARED_MEMORY, os.W_OK) else None,
            proxy={"server": proxy} if proxy else None,
        )
        context = launched.new_context(
            viewport={"width": width, "height": height},
            locale=call.locale,
            timezone_id=call.timezone,
            accept_downloads=False,
            service_workers="block",
        )
        try:
            yield context.new_page()
        finally:
            with suppress(Error):  # it has crashed, or was ended
                launched.close()


def go(page: Page, url: str) -> int:
    """Open an address; the status of the answer. A page that does not come is a refusal of the sandbox, or :class:`UpstreamError`."""
    try:
        answer = page.goto(url, wait_until="load")
    except TimeoutError as error:
        raise runtime.UpstreamError("The page did not load in time.", url=url) from error
    except Error as error:
        if _NO_TUNNEL in error.message:
            _ask_why(url)
        found = _NET_ERROR.search(error.message)
        why = found[1] if found else "no reason given"
        raise runtime.UpstreamError(f"The page cannot be loaded ({why}).", url=url) from error
    return answer.status if answer else 0


def settle(page: Page, milliseconds: int) -> None:
    """Wait until the page loads nothing any more, at most so long."""
    with suppress(TimeoutError):
        page.wait_for_load_state("networkidle", timeout=milliseconds)


def _ask_why(url: str) -> None:
    """The browser does not pass on why there is no way: ask once more. An ``OSError`` of the sandbox's says that it refuses."""
    target, proxy = urlsplit(url), urlsplit(os.environ.get("https_proxy", ""))
    connection = http.client.HTTPConnection(proxy.hostname or "", proxy.port, timeout=_ASK_S)
    connection.set_tunnel(target.hostname or "", target.port or 443)
    try:
        connection.connect()
    except OSError as error:
        if "403" in str(error):
            raise
    finally:
        connection.close()


def _trust(bundle: str) -> None:
    """Chromium has the public roots built in. Those that an operator has added are put into its user's own store."""
    if not bundle or not Path(CERTUTIL).exists():
        return
    public = set(_PEM.findall(PUBLIC_ROOTS.read_text()))
    own = [each for each in _PEM.findall(Path(bundle).read_text()) if each not in public]
    store = Path.home() / ".pki" / "nssdb"
    if own and not store.exists():
        store.mkdir(parents=True)
        _certutil("-N", "--empty-password", store=store)
        for place, certificate in enumerate(own):
            _certutil("-A", "-n", f"operator-{place}", "-t", "C,,", store=store, given=certificate)


def _certutil(*arguments: str, store: Path, given: str = "") -> None:
    subprocess.run(
        [CERTUTIL, "-d", f"sql:{store}", *arguments],
        input=given.encode(),
        check=True,
        capture_output=True,
        timeout=_ASK_S,
    )
