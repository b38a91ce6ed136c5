"""Is everything in the box that the supervisor and the tools count on? Runs once, as the last step of the image's build."""

from __future__ import annotations

import importlib
import os
import ssl
import stat
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


def main() -> None:
    for name in MODULES:
        importlib.import_module(name)
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


if __name__ == "__main__":
    main()
