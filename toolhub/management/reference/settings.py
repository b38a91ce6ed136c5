"""Settings: the page and the sample file, from the table and so from no environment."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

from kernel.variables import EVERY
from toolhub.management.reference.markdown import format_code, format_page, format_table
from toolhub.variables import VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel.variables import Variable

WIDTH = 120
COMPOSE = "docker compose"
HEAD = """\
# Settings of toolhub. Generated from toolhub/variables by `manage.py build_docs`; docs/reference/settings.md says more of each.
# All are optional: with none set, `make run` serves the embedded default (SQLite, one process, the local Docker engine). Copy
# this file to .env, which the hub, `make`, manage.py and docker compose read, or set the same names in the environment, which
# comes first. TOOLHUB_ENV_FILE, in the environment, names another file than .env; empty: none.
"""


def _groups() -> Iterator[tuple[str, list[Variable]]]:
    rows = sorted(VARIABLES.rows.values(), key=lambda row: row.elsewhere)
    return ((title, list(found)) for title, found in groupby(rows, lambda row: row.group))


def _default(row: Variable) -> str:
    if row.default in VARIABLES.rows or " " in row.default:
        return row.default
    return format_code(row.default) or ("none" if not row.elsewhere else "")


def _meaning(row: Variable) -> str:
    empty = f"Set to nothing: {row.empty}." if row.empty else ""
    secret = "(Is or holds a secret.)" if row.secret else ""
    # What stands in angles is a part of the text, and no element that a browser leaves out.
    return " ".join(part for part in (row.about.replace("<", "&lt;"), empty, secret) if part)


def _row(row: Variable) -> tuple[str, str, str, str, str]:
    unit = f", in {row.unit}" if row.unit and not row.unit.startswith("a ") else f" {row.unit}" if row.unit else ""
    return format_code(row.name), f"{row.allowed}{unit}", _default(row), ", ".join(row.roles), _meaning(row)


def settings_page() -> str:
    parts: list[str] = []
    for title, rows in _groups():
        parts += [f"## {title}", format_table(("name", "allowed", "default", "read by", "what for"), map(_row, rows))]
    return format_page(
        "Settings",
        "toolhub/variables",
        "Environment variables, or the same names in `.env`, which every process of the hub, `make`, `manage.py` and "
        "`docker compose` read. What the environment says itself comes first; `TOOLHUB_ENV_FILE` there names another file "
        "than `.env`, or none if it is empty. All are optional, and one that is set to nothing is not set, except where this "
        "page says what that means.",
        "A value that cannot be meant keeps every process from starting, with a sentence that names the setting and what is "
        "allowed. A name that begins with `TOOLHUB_` and is not here has no effect: processes say so in their log when they "
        "start, and so do `manage.py doctor` and `manage.py check`.",
        f"Who reads a setting is named as processes are in the production shape; the embedded shape is all of them in one. "
        f"`{EVERY}` includes the commands of `manage.py`.",
        *parts,
    )


def dotenv_sample() -> str:
    lines = [HEAD]
    for title, rows in _groups():
        if rows[0].elsewhere and rows[0].roles != (COMPOSE,):
            continue
        lines.append(f"# --- {title} ---")
        for row in rows:
            unit = f" In {row.unit}." if row.unit and not row.unit.startswith("a ") else ""
            lines += textwrap.wrap(f"{row.about}{unit}", WIDTH, initial_indent="# ", subsequent_indent="# ")
            lines.append(f"#{row.name}={row.example}")
        lines.append("")
    return "\n".join(lines)
