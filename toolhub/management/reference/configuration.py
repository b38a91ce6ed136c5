"""Which settings are there, with which defaults? Read from the sources, so that no environment shows through."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from django.conf import settings

from toolhub.management.reference.markdown import code, page, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT: Path = settings.BASE_DIR
# What neither dotenv-sample nor settings.py says beside the name.
MEANINGS = {
    "TOOLHUB_REDIS_URL": "Production shape: broker and wake-ups. Goes with TOOLHUB_DATABASE_URL.",
    "TOOLHUB_ALLOWED_HOSTS": "Host names that the hub answers to, separated by commas.",
    "TOOLHUB_TRUSTED_ORIGINS": "Origins whose forms are accepted when a proxy stands in front, separated by commas.",
    "TOOLHUB_TIME_ZONE": "Time zone in which the console shows times.",
    "TOOLHUB_DATABASE_POOL": "Connections that one process keeps to PostgreSQL, at most.",
    "TOOLHUB_WORKER_CONCURRENCY": "Calls of one tenant that a worker process runs at once.",
    "TOOLHUB_WORKER_SPARE": "Places of a worker beside them, for calls of other tenants.",
    "TOOLHUB_WORK_CLASSES": "Which calls a worker takes: quick, long (tools that may take longer than a minute), or both.",
    "TOOLHUB_WEB_THREADS": "Requests that a web process works on at once. Any number waits for answers beside them.",
    "TOOLHUB_SWEEP_INTERVAL_S": "Pause between two passes of the sweeper.",
    "TOOLHUB_LOG_LEVEL": "Of toolhub's own loggers (INFO) and of everything else (WARNING); a value set applies to both.",
    "TOOLHUB_DOCKER_URL": "Where the Docker engine answers.",
}


def _asked(tree: ast.AST) -> Iterator[tuple[str, ast.expr | None, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="env" | "env_int"), args=[ast.Constant(value=str(name)), *rest]):
                yield name, rest[0] if rest else None, node.lineno


def _sample_comments() -> dict[str, str]:
    """What dotenv-sample says directly above a name."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in (ROOT / "dotenv-sample").read_text().splitlines():
        if assigned := re.match(r"#?(\w+)=", line):
            found[assigned[1]] = re.sub(r"\s+", " ", " ".join(comment))
            comment = []
        elif line.startswith("# ") and not line.startswith("# ---"):
            comment.append(line[2:])
        else:
            comment = []
    return found


def _row(name: str, defaults: list[str], remarks: list[str]) -> tuple[str, str, str]:
    meaning = ". ".join(dict.fromkeys(part.rstrip(".") for part in (MEANINGS.get(name, ""), *remarks) if part))
    meaning = meaning[:1].upper() + meaning[1:]
    if not meaning:
        raise LookupError(f"Nobody says what {name} means: write it above the name in dotenv-sample.")
    return code(name), " or ".join(code(each) for each in dict.fromkeys(defaults)) or "empty", meaning


def settings_page() -> str:
    source = (ROOT / "toolhub" / "settings.py").read_text()
    tree, lines, comments = ast.parse(source), source.splitlines(), _sample_comments()
    defaults: dict[str, list[str]] = {}
    remarks: dict[str, list[str]] = {}
    for name, default, line in sorted(_asked(tree), key=lambda each: each[2]):
        defaults.setdefault(name, []).extend([ast.unparse(default)] if default is not None else [])
        remarks.setdefault(name, [comments.get(name, "")]).append(lines[line - 1].partition("  # ")[2])
    rows = [_row(name, defaults[name], remarks[name]) for name in defaults]
    return page(
        "Settings",
        "toolhub/settings.py and dotenv-sample",
        "Environment variables, or the same names in `.env`, which every process of the hub, `make`, `manage.py` and "
        "`docker compose` read. What the environment says itself comes first; `TOOLHUB_ENV_FILE` there names another file "
        "than `.env`, or none if it is empty. All are optional. "
        "Defaults are shown as the code has them. `TOOLHUB_DATABASE_URL` and `TOOLHUB_REDIS_URL` are set both or neither.",
        table(("name", "default", "meaning"), rows),
        "Read by libraries and not by the hub: `OTEL_EXPORTER_OTLP_ENDPOINT` (where spans go; without it they go nowhere) and "
        "`DOCKER_HOST` (when `TOOLHUB_DOCKER_URL` is empty).",
        "`TOOLHUB_FAULTS` is for tests only: it names points at which a process ends itself or stands still "
        "(toolhub/kernel/faults.py). Leave it unset.",
    )
