"""Target: the Python and the machine that dependencies are built for.

For the sandbox's, whatever the hub itself runs on: its image is Debian 12 with Python 3.11 (``sandbox/image/Dockerfile``), on
the machine that the worker is on.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
from functools import lru_cache

from packaging.markers import Marker, default_environment

PYTHON = (3, 11)
GLIBC_MINOR = 36  # of Debian 12
OLDEST_MINOR = {"x86_64": 5, "i686": 5}  # of manylinux; elsewhere 17
LEGACY = {"x86_64": ("manylinux2014", "manylinux2010", "manylinux1")}
PYTHON_TEXT = ".".join(map(str, PYTHON))
LEAST_PATCH = "3.11.2"  # what Debian 12 began with


def target_machine() -> str:
    found = platform.machine().lower()
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(found, found)


def target_name() -> str:
    """As people read it."""
    return f"Python {PYTHON_TEXT} on Linux {target_machine()}"


def list_platforms() -> list[str]:
    """The platform tags of wheels that run there, the newest first."""
    here = target_machine()
    minors = range(GLIBC_MINOR, OLDEST_MINOR.get(here, 17) - 1, -1)
    legacy = LEGACY.get(here, ("manylinux2014",))
    return [
        *(f"manylinux_2_{minor}_{here}" for minor in minors),
        *(f"{each}_{here}" for each in legacy),
        f"linux_{here}",
    ]


@lru_cache(maxsize=1)
def marker_environment() -> dict[str, str]:
    """What markers ask about. pip asks the hub's own Python; where that is another one, this says what differs."""
    same = sys.version_info[:2] == PYTHON
    return {
        **{name: str(value) for name, value in default_environment().items()},
        "python_version": PYTHON_TEXT,
        "python_full_version": platform.python_version() if same else LEAST_PATCH,
        "implementation_name": "cpython",
        "implementation_version": platform.python_version() if same else LEAST_PATCH,
        "platform_python_implementation": "CPython",
        "platform_machine": target_machine(),
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
        "extra": "",
    }


def marker_holds(marker: str, *, extra: str = "") -> bool:
    """Whether a marker is true there; the empty one always is."""
    return not marker or Marker(marker).evaluate({**marker_environment(), "extra": extra})


def find_compiler() -> str:
    """A Python whose byte code the sandbox reads; empty when this host has none."""
    if sys.version_info[:2] == PYTHON and os.name == "posix":
        return sys.executable
    return shutil.which(f"python{PYTHON_TEXT}") or ""


def folder_name(lock_digest: str) -> str:
    """The name of the folder: of all that decides what is in it."""
    text = "|".join(["toolhub dependencies 1", lock_digest, PYTHON_TEXT, target_machine()])
    return hashlib.sha256(text.encode()).hexdigest()
