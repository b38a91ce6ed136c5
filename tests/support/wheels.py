"""Small wheels, made as tests need them, in folders that pip takes them from."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    code: str = "",
    requires: Iterable[str] = (),
    tag: str = "py3-none-any",
    files: dict[str, str] | None = None,
) -> str:
    """A wheel of one module; its SHA-256. ``code`` stands in the module, ``files`` beside it."""
    requires = list(requires)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {each}" for each in requires),
    ]
    metadata += [f"Provides-Extra: {extra}" for extra in re.findall(r'extra == "(\w+)"', " ".join(requires))]
    content = {
        f"{module}.py": code or f"VERSION = {version!r}\n",
        **(files or {}),
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    record = "".join(f"{path},sha256={_urlsafe(text)},{len(text.encode())}\n" for path, text in content.items())
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**content, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)
    return sha256_of(folder, name, version, tag=tag)


def sha256_of(folder: Path, name: str, version: str = "1.0", *, tag: str = "py3-none-any") -> str:
    return hashlib.sha256((folder / f"{name.replace('-', '_')}-{version}-{tag}.whl").read_bytes()).hexdigest()


def _urlsafe(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def line(name: str, sha256: str, version: str = "1.0") -> str:
    """A line of a lock."""
    return f"{name}=={version} --hash=sha256:{sha256}"
