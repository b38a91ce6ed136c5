"""Sandbox images: the files that make them, and what they are called.

There is one for each kind of tool: :data:`PYTHON` for the usual ones, :data:`BROWSER` with Chromium, Playwright and Node.js,
:data:`NODE` for programs in JavaScript, :data:`GIT` for tools that run git. A tag is a hash of the files, so that an image is built
exactly once for each state of the sources and two checkouts on one machine never take the other's. Standard library only: it is asked
before anything is installed.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PYTHON, BROWSER, NODE, GIT = KINDS = ("python", "browser", "node", "git")
IMAGE_WORD = re.compile(r"[a-z][a-z0-9_-]{0,39}")
REPOSITORY = "toolhub-sandbox"
ROOT = Path(__file__).resolve().parents[2]

# What the Dockerfile copies, and the recipe itself. Of unitools what a tool may import in the box: not the author's commands,
# the client of a hub, or what packs and compares.
_DIALECTS = tuple(
    f"unitools/dialects/{place}*.py" for place in ("", "parsers/", "renderers/", "streams/", "text_calls/")
)
SOURCES = (
    "sandbox/*.py",
    "sandbox/program.cjs",
    "unitools/*.py",
    "unitools/manifest.schema.json",
    "unitools/expressions/*.py",
    "unitools/openapi/__init__.py",
    "unitools/openapi/argument_values.py",
    "unitools/openapi/multipart.py",
    "unitools/openapi/request_bodies.py",
    "unitools/openapi/requests.py",
    "unitools/openapi/service_answers.py",
    *_DIALECTS,
)
RECIPE = tuple(f"sandbox/image/{name}" for name in ("Dockerfile", "assemble.py", "packages.txt", "selfcheck.py"))
# What the other kinds have beside Python lies in a layer of its own, which changes with these files only.
LAYER_RECIPE = {
    BROWSER: ("assemble.py", "packages.txt", "browser.txt", "browser.lock"),
    NODE: ("assemble.py", "packages.txt", "node.txt", "node.lock"),
    GIT: ("assemble.py", "packages.txt", "git.txt"),
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


def read_images(text: str, *, python: str = "") -> dict[str, str]:
    """By the names that manifests use, the images of this hub; empty: the one of these sources. ``text`` is JSON or empty.

    ``ValueError`` with a sentence when it cannot be used.
    """
    more = json.loads(text) if text else {}
    if not isinstance(more, dict) or not all(isinstance(image, str) and image for image in more.values()):
        raise ValueError(
            'It is a JSON object of names and images, for example {"node": "registry.example/node-box:1"}.'
        )
    if odd := [name for name in more if not IMAGE_WORD.fullmatch(name)]:
        raise ValueError(
            f"{odd[0]!r} is no name for an image: small letters, digits, - and _, beginning with a letter."
        )
    return dict.fromkeys(KINDS, "") | {PYTHON: python} | more


def find_image(word: str, images: Mapping[str, str]) -> str:
    """What the engine calls the image that a manifest calls ``word``; ``KeyError`` when there is none."""
    return images[word] or image_name(kind=word)


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
