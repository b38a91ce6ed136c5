"""Variables: does a setting say what it means, and is refused what it cannot mean?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kernel.variables import Variables, read_address, read_mail_address, read_runtimes, read_time_zone
from tests.e2e.processes import clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
SCHEMES = ("https", "http")
DECLARED: dict[str, Callable[[Variables], Any]] = {
    "number": lambda v: v.number("X", 4, least=1, most=9, about="."),
    "flag": lambda v: v.flag("X", default=True, about="."),
    "choice": lambda v: v.choice("X", "a", of=("a", "b"), about="."),
    "listed": lambda v: v.listed("X", "a", of=("a", "b"), about="."),
    "path": lambda v: v.path("X", Path("/var"), about="."),
    "paths": lambda v: v.paths("X", Path("/var"), about=".", empty="none"),
    "url": lambda v: v.url("X", schemes=SCHEMES, about="."),
    "networks": lambda v: v.networks("X", about="."),
    "runtimes": lambda v: v.value("X", "{}", read_runtimes, "an object", about="."),
    "address": lambda v: v.value("X", "[::1]:80", read_address, "a host and a port", about="."),
    "time zone": lambda v: v.value("X", "UTC", read_time_zone, "a time zone", about="."),
    "mail": lambda v: v.value("X", "", read_mail_address, "smtp://…", about="."),
}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("number", None, 4),
        ("number", "", 4),
        ("number", "9", 9),
        ("flag", "0", False),
        ("flag", None, True),
        ("choice", "b", "b"),
        ("listed", " b , a,", ["b", "a"]),
        ("path", "./x", Path("x")),
        ("paths", f"/a{os.pathsep}/b", [Path("/a"), Path("/b")]),
        ("paths", "", []),
        ("url", "http://hub:8000/x", "http://hub:8000/x"),
        ("networks", "10.20.0.0/16, 192.168.7.9/32,fd00::/8", ["10.20.0.0/16", "192.168.7.9/32", "fd00::/8"]),
        ("runtimes", None, {}),
        ("runtimes", '{"default": "runc", "untrusted": "runsc"}', {"default": "runc", "untrusted": "runsc"}),
        ("address", "0.0.0.0:9464", "0.0.0.0:9464"),
        ("time zone", "Asia/Shanghai", "Asia/Shanghai"),
        ("mail", "smtp+plain://relay", "smtp+plain://relay"),
    ],
)
def test_a_setting_is_what_was_written_or_its_default(kind: str, text: str | None, value: Any) -> None:
    variables = Variables({} if text is None else {"X": text})

    assert DECLARED[kind](variables) == value
    assert variables.mistakes == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("number", text) for text in ("0", "10", "4.5", "four", "-1")),
        *(("flag", text) for text in ("yes", "true", "01")),
        ("choice", "c"),
        *(("listed", text) for text in ("c", "a,c", ",")),
        *(("url", text) for text in ("hub.example.org", "ftp://hub", "https:hub")),
        *(("networks", text) for text in ("10.20.0.1/16", "intern.example.org", "10.20.0.0/16;10.30.0.0/16", "*")),
        *(
            ("runtimes", text)
            for text in ("runc", "[]", "{", '{"default": ""}', '{"default": 1}', '{"trusted": "runc"}')
        ),
        *(("address", text) for text in ("8000", ":8000", "host:", "host:0", "host:99999")),
        *(("time zone", text) for text in ("Mars/Base", "../../etc/passwd")),
        *(("mail", text) for text in ("mail.example.org", "https://mail.example.org", "smtp://")),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_with_the_name_and_what_is_allowed(kind: str, text: str) -> None:
    variables = Variables({"X": text})

    DECLARED[kind](variables)

    assert len(variables.mistakes) == 1
    assert variables.mistakes[0].startswith(f"X must be {variables.rows['X'].allowed}, not {text!r}")


def test_a_secret_that_cannot_be_meant_is_not_repeated() -> None:
    variables = Variables({"X": "postgres//toolhub:PASSWORD@db/toolhub"})

    variables.url("X", schemes=("postgresql",), secret=True, about=".")

    assert variables.mistakes == ["X must be an address that begins with postgresql://."]


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    env = clean_environment(
        TOOLHUB_DATA_DIR=str(tmp_path), TOOLHUB_LEASE_S="soon", TOOLHUB_DIRECT="yes", TOOLHUB_REQUIRE_MFA="owners"
    )

    done = subprocess.run(
        [sys.executable, "manage.py", "doctor"], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    for said in (
        "TOOLHUB_LEASE_S must be a whole number of at least 1, not 'soon'.",
        "TOOLHUB_DIRECT must be 0 or 1, not 'yes'.",
        "TOOLHUB_REQUIRE_MFA must be one or more of owner, operator, reviewer, auditor, developer, separated by commas, "
        "not 'owners'.",
    ):
        assert said in done.stderr


def test_the_table_is_read_without_what_has_to_be_installed_first() -> None:
    program = "import sys; import toolhub.variables; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, env={}, capture_output=True, text=True, check=True
    )

    assert {"django", "celery", "kombu", "pydantic"} & set(done.stdout.split()) == set()
