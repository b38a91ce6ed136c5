"""Which code goes into which box?

The reviewed code, as it lies on this worker, into a box of the image that the manifest names. It is read and hashed again
as soon as any of its files was touched, and what differs from the review is not run.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from django.conf import settings

from invocations.problems import BuildChanged, ImageMissing
from sandbox.image import PYTHON, image_called
from unitools.packages import PackageError, build_zip, digest_of_zip, find_shipped

if TYPE_CHECKING:
    from pathlib import Path

    from registry.models import ToolVersion

_KEPT = 32  # packages, of at most 16 MiB each

_Touched = tuple[tuple[str, int, int, int], ...]
_shipped: dict[str, tuple[_Touched, bytes, str]] = {}
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
    digest = digest_of_zip(archive)  # of what will be shipped, not of a second look at the folder
    with _lock:
        _shipped.pop(place, None)
        while len(_shipped) >= _KEPT:
            del _shipped[next(iter(_shipped))]
        _shipped[place] = (touched, archive, digest)
    return archive, digest


def package_of(version: ToolVersion) -> bytes:
    """The reviewed code, as it is shipped. Code that differs from what was reviewed is not run."""
    try:
        archive, now = _shipped_of(find_shipped(version.view, settings.TOOLHUB_TOOLS_PATH))
    except (PackageError, OSError) as error:
        raise BuildChanged(str(error), remedy="Restore the package on the worker, or submit a new version.") from error
    if now != version.build_digest:
        raise BuildChanged(
            f"The code of {version.tool.name} {version.version} differs from what was reviewed.",
            details={"reviewed": version.build_digest, "found": now},
            remedy="Submit the changed code as a new version and have it reviewed.",
        )
    return archive


def image_of(version: ToolVersion) -> str:
    """What the engine calls the image that the version runs in; empty: the usual one."""
    name = version.view.image
    if name == PYTHON:
        return ""
    try:
        return image_called(name, settings.TOOLHUB_SANDBOX_IMAGES)
    except KeyError:
        raise ImageMissing(
            f"This hub has no sandbox image {name!r} any more.",
            remedy="Operators: add it to TOOLHUB_SANDBOX_IMAGES, or enable a version that names another.",
        ) from None
