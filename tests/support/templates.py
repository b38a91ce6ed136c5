"""Templates of the hub, by the names that pages give them: those in ``templates/`` and those beside their pages."""

from __future__ import annotations

from pathlib import Path

from toolhub.packages import find_template_folders

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "templates", *find_template_folders()]
TEMPLATES = sorted(path for folder in FOLDERS for path in folder.rglob("*.html"))


def name_of(path: Path) -> str:
    """Django's name for it."""
    return next(path.relative_to(folder).as_posix() for folder in FOLDERS if path.is_relative_to(folder))
