"""What is the code of a tool, as one package that can be digested and shipped?

A package is the folder of the first segment of the implementation's module, under a tools root. Its digest is over the
sorted relative paths and contents, so it is the same on every machine; its zip is deterministic as well.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
MAX_FILES = 2000
_EPOCH = (1980, 1, 1, 0, 0, 0)


class PackageError(ValueError):
    """The code of a tool cannot be used; the message says why."""


def find_module(module: str, roots: Sequence[Path]) -> Path:
    """The package folder that holds ``module``: ``a.b`` is ``<root>/a/b.py`` or ``<root>/a/b/__init__.py``."""
    parts = module.split(".")
    for root in roots:
        package = root / parts[0]
        if not (package / "__init__.py").is_file():
            continue
        target = root.joinpath(*parts)
        if target.with_suffix(".py").is_file() or (target / "__init__.py").is_file():
            return package
        raise PackageError(f"The package {parts[0]} has no module {module}.")
    raise PackageError(f"No tools root holds a package {parts[0]}.")


def _files(package: Path) -> Iterator[tuple[str, bytes]]:
    """Relative POSIX path and content of each file, sorted; without compiled files."""
    size = count = 0
    for path in sorted(package.rglob("*"), key=lambda each: each.relative_to(package).as_posix()):
        relative = path.relative_to(package)
        if "__pycache__" in relative.parts or path.suffix == ".pyc":
            continue
        if path.is_symlink():
            raise PackageError(f"{relative} is a symbolic link; a package holds plain files only.")
        if not path.is_file():
            continue
        content = path.read_bytes()
        size, count = size + len(content), count + 1
        if size > MAX_BYTES or count > MAX_FILES:
            raise PackageError(f"The package {package.name} is larger than {MAX_BYTES} bytes or {MAX_FILES} files.")
        yield relative.as_posix(), content


def build_digest(package: Path) -> str:
    """``sha256:<hex>`` of the package's paths and contents."""
    total = hashlib.sha256()
    for name, content in _files(package):
        total.update(len(name.encode()).to_bytes(4, "big") + name.encode() + hashlib.sha256(content).digest())
    return "sha256:" + total.hexdigest()


def build_zip(package: Path) -> bytes:
    """The package as a zip with its own folder on top; equal packages give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, content in _files(package):
            info = zipfile.ZipInfo(f"{package.name}/{name}", _EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, content)
    return buffer.getvalue()
