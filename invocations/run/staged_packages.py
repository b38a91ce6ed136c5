"""Staged packages: which code goes into which box.

The reviewed code into a box of the image that the manifest names: from the capsule that brought it, which is kept in the database
under its digest, or as it lies on this worker. A folder is read and hashed again as soon as any of its files was touched, a capsule
when this process has not seen it yet; what differs from the review is not run.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from django.conf import settings

from invocations.problems import BuildChanged, ImageMissing
from registry.capsules.services import load_content
from registry.models import Capsule
from registry.problems import CapsuleDamaged
from sandbox.image import PYTHON, find_image
from unitools.capsules import compute_capsule_digest, open_capsule
from unitools.packages import PackageError, build_empty_zip, build_zip, compute_zip_digest, find_shipped, zip_files

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from registry.models import ToolVersion

_KEPT = 32  # packages, of at most 16 MiB each

_Touched = tuple[tuple[str, int, int, int], ...]
_shipped: dict[str, tuple[_Touched, bytes, str]] = {}  # by folder, or by the digest of a capsule
_lock = threading.Lock()


def _touched(package: Path) -> _Touched:
    """When which file was last changed: the kernel moves ``ctime`` with every write, and nobody can set it back."""
    found: list[tuple[str, int, int, int]] = []
    waiting = [str(package)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name == "__pycache__":
                    continue
                about = entry.stat(follow_symlinks=False)
                found.append((entry.path, about.st_ctime_ns, about.st_size, about.st_ino))
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return tuple(sorted(found))


def _shipped_of(package: Path) -> tuple[bytes, str]:
    """The package as a zip, and its digest."""
    place = str(package)
    touched = _touched(package)  # before it is read: a change meanwhile is seen by the next call
    known = _shipped.get(place)
    if known is not None and known[0] == touched:
        return known[1], known[2]
    archive = build_zip(package)
    digest = compute_zip_digest(archive)  # of what will be shipped, not of a second look at the folder
    _keep(place, (touched, archive, digest))
    return archive, digest


def _keep(place: str, shipped: tuple[_Touched, bytes, str]) -> None:
    with _lock:
        _shipped.pop(place, None)
        while len(_shipped) >= _KEPT:
            del _shipped[next(iter(_shipped))]
        _shipped[place] = shipped


def _capsule_of(version: ToolVersion, capsule_id: UUID) -> bytes:
    """The package of a capsule as a zip. Kept by the digest of what it was made from, which is that of the version."""
    key = version.build_digest
    known = _shipped.get(key)
    if known is not None:
        return known[1]
    try:
        content = load_content(capsule_id)
    except (CapsuleDamaged, Capsule.DoesNotExist) as error:
        raise BuildChanged(
            f"The capsule of {version.tool.name} {version.version} is not what was reviewed: {error}",
            details={"reviewed": version.build_digest},
            remedy="Restore the capsule from a backup, or submit a new version.",
        ) from error
    if compute_capsule_digest(content) != version.build_digest:
        raise _changed(version, compute_capsule_digest(content))
    archive = zip_files(sorted(open_capsule(content).files.items()))
    _keep(key, ((), archive, key))
    return archive


def _changed(version: ToolVersion, found: str) -> BuildChanged:
    return BuildChanged(
        f"The code of {version.tool.name} {version.version} differs from what was reviewed.",
        details={"reviewed": version.build_digest, "found": found},
        remedy="Submit the changed code as a new version and have it reviewed.",
    )


def stage_package(version: ToolVersion) -> bytes:
    """The reviewed code, as it is shipped; empty where an operation of a service answers. Code that differs from what was reviewed
    is not run."""
    if not version.view.has_package:
        return build_empty_zip()
    if version.capsule_id is not None:
        return _capsule_of(version, version.capsule_id)
    try:
        archive, now = _shipped_of(find_shipped(version.view, settings.TOOLHUB_TOOLS_PATH))
    except (PackageError, OSError) as error:
        raise BuildChanged(str(error), remedy="Restore the package on the worker, or submit a new version.") from error
    if now != version.build_digest:
        raise _changed(version, now)
    return archive


def find_run_image(version: ToolVersion) -> str:
    """What the engine calls the image that the version runs in; empty: the usual one."""
    name = version.view.image
    if name == PYTHON:
        return ""
    try:
        return find_image(name, settings.TOOLHUB_SANDBOX_IMAGES)
    except KeyError:
        raise ImageMissing(
            f"This hub has no sandbox image {name!r} any more.",
            remedy="Operators: add it to TOOLHUB_SANDBOX_IMAGES, or enable a version that names another.",
        ) from None
