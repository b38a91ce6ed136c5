"""Self-check: whether the box has all that the supervisor and the tools need. Runs once, as the last step of the image's build.

The build says with KIND what there is beside Python.
"""

from __future__ import annotations

import importlib
import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

MODULES = (
    "asyncio",
    "bz2",
    "ctypes",
    "decimal",
    "email",
    "hashlib",
    "json",
    "lzma",
    "sqlite3",
    "uuid",
    "zipfile",
    "zlib",
)
PACKAGES = "/usr/lib/toolhub/packages"
# A program of each kind, and what it says when all that it loads is there.
PROGRAMS = {
    "browser": (
        (("/usr/lib/chromium/chromium-headless-shell", "--version"), "Chromium"),
        (
            (f"{PACKAGES}/playwright/driver/node", f"{PACKAGES}/playwright/driver/package/cli.js", "--version"),
            "Version",
        ),
        (("/usr/bin/certutil", "-H"), ""),
        (("/usr/bin/node", "-p", "typeof fetch"), "function"),
    ),
    "node": (
        (("/usr/bin/node", "-p", "typeof fetch + new Intl.NumberFormat('de').format(1234.5)"), "function1.234,5"),
    ),
    "git": ((("/usr/bin/git", "--version"), "git version"),),
}


def main() -> None:
    for name in MODULES:
        importlib.import_module(name)
    check_kind(os.environ.get("KIND", "python"))
    ZoneInfo("Asia/Shanghai")
    sys.path.insert(0, str(Path(__file__).parent))
    for name in ("unitools.runtime", "sandbox.supervisor"):
        importlib.import_module(name)

    if len(ssl.create_default_context(cafile="/etc/ssl/certs/ca-certificates.crt").get_ca_certs()) < 50:
        raise SystemExit("The certificate bundle is not complete.")
    for directory, _folders, files in os.walk("/", onerror=None):
        if directory.startswith(("/proc", "/sys", "/dev", "/etc")):
            continue
        for name in files:
            mode = Path(directory, name).lstat().st_mode
            if mode & (stat.S_ISUID | stat.S_ISGID):
                raise SystemExit(f"{directory}/{name} changes the user or group that runs it.")
            if not stat.S_ISLNK(mode) and mode & 0o222 and not name == ".dockerenv":
                raise SystemExit(f"{directory}/{name} can be written to.")


def check_kind(kind: str) -> None:
    if kind == "browser":
        sys.path += [str(Path(__file__).parent), PACKAGES]
        importlib.import_module("unitools.browser")
    for command, says in PROGRAMS.get(kind, ()):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if says not in done.stdout or done.returncode > 1:
            raise SystemExit(f"{command[0]} does not run: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
