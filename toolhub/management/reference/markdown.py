"""Markdown: how a reference page is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def format_page(title: str, source: str, *parts: str) -> str:
    note = f"<!-- Generated from {source} by `manage.py build_docs`. Do not edit. -->"
    return "\n\n".join([note, f"# {title}", *(part.strip("\n") for part in parts)]) + "\n"


def format_cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def format_table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *[[format_cell(value) for value in row] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def format_code(value: Any) -> str:
    return f"`{value}`" if value not in ("", None) else ""
