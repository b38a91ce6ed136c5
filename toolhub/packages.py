"""Packages of nouns: where addresses and templates are found, wherever in them they lie."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

# Django tries one address after the other: calls are made most often.
PACKAGES = ("invocations", "registry", "access", "evidence", "toolhub")


def find_paths(name: str) -> list[tuple[str, Path]]:
    """(package, path) of each file or folder of that name; what lies in a package itself before what lies deeper."""
    found = []
    for root in PACKAGES:
        for folder in map(Path, import_module(root).__path__):
            paths = [((root, *path.relative_to(folder).parent.parts), path) for path in folder.rglob(name)]
            found += [(".".join(parts), path) for parts, path in sorted(paths, key=lambda each: (len(each[0]), each))]
    return found


def find_template_folders() -> list[Path]:
    """Those beside the pages."""
    return [path for _, path in find_paths("templates")]
