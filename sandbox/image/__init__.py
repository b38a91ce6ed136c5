"""Which files make the sandbox image, and what is it called?

The tag is a hash of those files, so that an image is built exactly once for each state of the sources and two checkouts
on one machine never take the other's. Standard library only: it is asked before anything is installed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

REPOSITORY = "toolhub-sandbox"
ROOT = Path(__file__).resolve().parents[2]

# What the Dockerfile copies, and the recipe itself. Of unitools only what a tool may import in the box.
SOURCES = ("sandbox/*.py", "unitools/__init__.py", "unitools/runtime.py")
RECIPE = tuple(f"sandbox/image/{name}" for name in ("Dockerfile", "assemble.py", "packages.txt", "selfcheck.py"))


def build_context(root: Path = ROOT) -> dict[str, Path]:
    """Everything that the image is built from: its path in the repository, and the file."""
    found = [path for pattern in SOURCES + RECIPE for path in root.glob(pattern)]
    return {path.relative_to(root).as_posix(): path for path in sorted(found)}


def image_name(root: Path = ROOT) -> str:
    """For example ``toolhub-sandbox:4f1c…`` (12 digits)."""
    digest = hashlib.sha256()
    for name, path in build_context(root).items():
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"
