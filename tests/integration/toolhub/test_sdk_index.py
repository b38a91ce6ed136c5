"""SDK index: does the hub give its own SDK to whoever asks for it, and can nobody slip in another one?"""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import re
import subprocess
import sys
import threading
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scripts.provision import wheels
from tests.support.wheels import make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client
    from pytest_django.live_server_helper import LiveServer

ROOT = Path(__file__).resolve().parents[3]
# What ours need.
OTHERS = {
    "pydantic": "2.12",
    "anyio": "4.7",
    "cryptography": "46.0",
    "httpx2": "2.16",
    "idna": "3",
    "jsonschema": "4.25",
    "jsonschema-rs": "0.42",
    "packaging": "24",
    "pyyaml": "6",
    "uuid-utils": "0.12",
}
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True, scope="module")
def built() -> None:
    wheels.ensure_wheels(Path(sys.executable))


@pytest.fixture
def strangers(tmp_path: Path) -> Iterator[str]:
    """The rest of the world: what the SDK needs, and packages of our names in a version that is higher than ours."""
    for name, version in {
        "toolhub-llm": "99",
        "toolhub-unitools": "99",
        "toolhub-verify": "99",
        "unitools": "99",
        **OTHERS,
    }.items():
        make_wheel(tmp_path / "simple" / name, name, version)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def pip(python: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "TOOLHUB_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, *arguments],
        env=clean | {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["toolhub-unitools", "toolhub-verify", "toolhub-llm"])
def test_what_is_installed_from_the_hub_stays_the_hubs_when_a_stranger_has_the_name_in_a_higher_version(
    name: str, live_server: LiveServer, strangers: str, settings: Any, tmp_path: Path
) -> None:
    settings.TOOLHUB_SDK_INDEX = strangers
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"

    pip(python, "install", "--index-url", f"{live_server.url}/sdk/", name)
    pip(python, "install", "--upgrade", "--index-url", f"{live_server.url}/sdk/", name)

    installed = dict(line.split("==") for line in pip(python, "freeze").splitlines())
    ours = {each: version for each, version in installed.items() if each not in OTHERS}
    assert ours == dict.fromkeys({"toolhub-llm": ["toolhub-llm", "toolhub-unitools"]}.get(name, [name]), "0.1.0")


def test_the_index_names_files_with_their_hashes(client: Client) -> None:
    page = client.get("/sdk/toolhub-unitools/").content.decode()

    (address, digest), *more = re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page)
    assert more == []
    assert 'data-requires-python="&gt;=3.11"' in page
    answer = client.get(address)
    assert hashlib.sha256(answer.content).hexdigest() == digest


@pytest.mark.parametrize("name", ["unitools", "toolhub", "toolhub-server", "toolhub-else"])
def test_a_name_like_ours_is_looked_for_nowhere_else(client: Client, name: str) -> None:
    assert client.get(f"/sdk/{name}/").status_code == 404


@pytest.mark.parametrize(
    "secret", ["user:s3cret@packages.example.org/simple", "packages.example.org/s3cret/simple?t=s3cret"]
)
def test_nobody_is_told_the_index_that_the_hub_installs_from(secret: str, client: Client, settings: Any) -> None:
    settings.TOOLHUB_PACKAGE_INDEX = f"https://{secret}/"

    answer = client.get("/sdk/pydantic/")

    assert answer.status_code == 404
    assert b"TOOLHUB_SDK_INDEX" in answer.content
    assert b"s3cret" not in answer.content + str(answer.headers).encode()
    settings.TOOLHUB_SDK_INDEX = "https://mirror.example.org/simple/"
    assert client.get("/sdk/pydantic/")["Location"] == "https://mirror.example.org/simple/pydantic/"


def test_other_packages_come_from_the_public_index(client: Client, settings: Any) -> None:
    settings.TOOLHUB_PACKAGE_INDEX = ""
    assert client.get("/sdk/pydantic/")["Location"] == "https://pypi.org/simple/pydantic/"
    assert client.get("/sdk/Pydantic_Core/")["Location"] == "/sdk/pydantic-core/"


def test_people_read_how_to_install_and_programs_get_a_list(client: Client) -> None:
    page = client.get("/sdk/").content.decode()
    listed = client.get("/sdk/", headers={"Accept": "application/vnd.pypi.simple.v1+html"}).content.decode()

    assert "--index-url" in page
    assert [
        name for name in ("toolhub-unitools[hub]", "toolhub-verify", "toolhub-llm[models]") if name not in page
    ] == []
    assert re.findall(r'href="(/sdk/[^"]+)"', listed) == [
        "/sdk/toolhub-llm/",
        "/sdk/toolhub-unitools/",
        "/sdk/toolhub-verify/",
    ]
