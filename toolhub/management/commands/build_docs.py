"""Reference pages: written from the code, or held against it.

Writes the generated pages of ``docs/reference``, and ``dotenv-sample``, from the code they describe; with ``--check`` writes
nothing, names the pages that differ and exits with 2. The pages depend on the sources only, never on the environment they are
built in.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand

from toolhub.configuration.document import SCHEMA as CONFIGURATION_SCHEMA
from toolhub.management.reference import boxd, catalogues, changes, files, interface, manifest, search, served_formats
from toolhub.management.reference import settings as settings_reference
from unitools.manifest import SCHEMA_PATH

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROOT: Path = settings.BASE_DIR
REFERENCE = ROOT / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "api.md": interface.api_page,
    "boxd.md": boxd.boxd_page,
    "boxd.schema.json": boxd.schema_document,
    "changes.md": changes.changes_page,
    "commands.md": catalogues.commands_page,
    "configuration.md": files.configuration_file_page,
    "configuration.schema.json": CONFIGURATION_SCHEMA.read_text,
    "evidence-kinds.md": catalogues.evidence_kinds_page,
    "manifest.md": manifest.manifest_page,
    "manifest.schema.json": SCHEMA_PATH.read_text,
    "openapi.json": interface.openapi_document,
    "problems.md": catalogues.problems_page,
    "roles.md": catalogues.roles_page,
    "search.md": search.search_page,
    "served-formats.md": served_formats.served_formats_page,
    "settings.md": settings_reference.settings_page,
    "states.md": catalogues.states_page,
    "../../dotenv-sample": settings_reference.dotenv_sample,
}


class Command(BaseCommand):
    help = "Write the generated pages of docs/reference. With --check: name the pages that differ, and exit with 2."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--check", action="store_true", help="compare only")

    def handle(self, *args: Any, check: bool = False, **options: Any) -> None:
        different = []
        for name, build in PAGES.items():
            path, text = (REFERENCE / name).resolve(), build()
            if path.exists() and path.read_text() == text:
                continue
            different.append(path.relative_to(ROOT))
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        for path in different:
            self.stdout.write(f"{path} {'differs from the code' if check else 'written'}")
        if check and different:
            self.stdout.write("Type `.venv/bin/python manage.py build_docs` and commit the result.")
            sys.exit(2)
