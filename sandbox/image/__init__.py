"""Which files make the sandbox image, and what is it called?

The tag is a hash of those files, so that an image is built exactly once for each state of the sources and two checkouts
on one machine never take the other's. Standard library only: it is asked before anything is installed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

REPOSITORY = "toolhub-sandbox"
ROOT = Path(__file__).resolve().parents[2]

# Of unitools only what a tool may import in the box.
AUTHORS = ("unitools/__init__.py", "unitools/runtime.py")
RECIPE = ("Dockerfile", "assemble.py", "packages.txt", "selfcheck.py")


def build_context(root: Path = ROOT) -> dict[str, Path]:
    """Everything that the image is built from: the place in the build context, and the file."""
    files = {name: root / "sandbox" / "image" / name for name in RECIPE}
    files |= {f"toolhub/sandbox/{path.name}": path for path in (root / "sandbox").glob("*.py")}
    files |= {f"toolhub/{name}": root / name for name in AUTHORS}
    return dict(sorted(files.items()))


def image_name(root: Path = ROOT) -> str:
    """For example ``toolhub-sandbox:4f1c…`` (12 digits)."""
    digest = hashlib.sha256()
    for name, path in build_context(root).items():
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"{REPOSITORY}:{digest.hexdigest()[:12]}"
