"""Which files make the sandbox images, and what are they called?

There is one for each kind of tool: :data:`PYTHON` for the usual ones, :data:`BROWSER` with Chromium and Playwright,
:data:`NODE` for programs in JavaScript. A tag is a hash of the files, so that an image is built exactly once for each state
of the sources and two checkouts on one machine never take the other's. Standard library only: it is asked before
anything is installed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

PYTHON, BROWSER, NODE = KINDS = ("python", "browser", "node")
REPOSITORY = "toolhub-sandbox"
ROOT = Path(__file__).resolve().parents[2]

# What the Dockerfile copies, and the recipe itself. Of unitools only what a tool may import in the box.
SOURCES = ("sandbox/*.py", "unitools/__init__.py", "unitools/runtime.py")
RECIPE = tuple(f"sandbox/image/{name}" for name in ("Dockerfile", "assemble.py", "packages.txt", "selfcheck.py"))
# What the other kinds have beside Python lies in a layer of its own, which changes with these files only.
LAYER_RECIPE = {
    BROWSER: ("assemble.py", "packages.txt", "browser.txt", "browser.lock"),
    NODE: ("assemble.py", "packages.txt", "node.txt"),
}
ON_LAYER = "sandbox/image/on-layer.Dockerfile"


def build_context(root: Path = ROOT) -> dict[str, Path]:
    """Everything that the Python image is built from: its path in the repository, and the file."""
    found = [path for pattern in SOURCES + RECIPE for path in root.glob(pattern)]
    return {path.relative_to(root).as_posix(): path for path in sorted(found)}


def image_name(root: Path = ROOT, kind: str = PYTHON) -> str:
    """For example ``toolhub-sandbox:4f1c…`` or ``toolhub-sandbox-browser:07d2…`` (12 digits)."""
    files = build_context(root)
    if kind == PYTHON:
        return f"{REPOSITORY}:{_digest(files)}"
    return f"{REPOSITORY}-{kind}:{_digest(files | _layer_files(root, kind) | {ON_LAYER: root / ON_LAYER})}"


def layer_name(kind: str, root: Path = ROOT) -> str:
    """The image that holds what a kind has beside our own sources: ``toolhub-sandbox-layer:browser-5e0a…``."""
    return f"{REPOSITORY}-layer:{kind}-{_digest(_layer_files(root, kind))}"


def _layer_files(root: Path, kind: str) -> dict[str, Path]:
    return {f"sandbox/image/{name}": root / "sandbox" / "image" / name for name in LAYER_RECIPE[kind]}


def _digest(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:12]
