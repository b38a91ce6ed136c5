"""Trusted proxies: whose word on a caller's scheme and address is believed, whatever web server runs the application?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import ROOT, clean_environment

if TYPE_CHECKING:
    from pathlib import Path

# The application as a web server loads it, asked by a neighbour that says https.
ASKED = """
import asyncio, json
from toolhub.asgi import application

async def main():
    sent = []
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": "/sign-in", "root_path": "",
        "query_string": b"", "client": ("127.0.0.1", 4711), "server": ("127.0.0.1", 8000),
        "headers": [(b"host", b"hub.example.org"), (b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"203.0.113.7")],
    }
    waiting = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        return waiting.pop() if waiting else await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await application(scope, receive, send)
    headers = {name.lower().decode(): value.decode() for name, value in sent[0]["headers"]}
    print(json.dumps([sent[0]["status"], scope["client"][0], headers.get("strict-transport-security")]))

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("proxies", "status", "address", "keeps_to_https"),
    [
        ("127.0.0.1/32", 200, "203.0.113.7", "max-age=31536000"),
        ("10.0.0.7/32", 301, "127.0.0.1", None),
        ("", 200, "127.0.0.1", None),
    ],
    ids=["named", "another is named", "nobody is named"],
)
def test_a_proxy_is_believed_when_it_is_named(
    proxies: str, status: int, address: str, keeps_to_https: str | None, tmp_path: Path
) -> None:
    env = clean_environment(
        TOOLHUB_DATA_DIR=str(tmp_path),
        TOOLHUB_PUBLIC_URL="https://hub.example.org",
        TOOLHUB_ALLOWED_HOSTS="hub.example.org",
        TOOLHUB_PROXIES=proxies,
    )

    done = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=ROOT, env=env | {"PATH": os.environ["PATH"]}, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [status, address, keeps_to_https]
