"""Changes: those told apart between two versions of a tool, and what each needs."""

from __future__ import annotations

from toolhub.management.reference.markdown import format_code, format_page, format_table
from unitools.changes import BUMPS, KINDS, RISKS
from unitools.compatibility import SCHEMA_KINDS, SchemaEffect, compute_bump

EFFECTS = {
    SchemaEffect.TEXT: "texts that people and models read",
    SchemaEffect.NOTE: "what callers go by and no validator checks",
    SchemaEffect.SAME: "written otherwise, the same values are valid",
    SchemaEffect.WIDENED: "more values are valid",
    SchemaEffect.NARROWED: "fewer values are valid",
    SchemaEffect.UNCLEAR: "it has no proof either way",
}


def changes_page() -> str:
    order = {word: at for at, word in enumerate((*reversed(BUMPS), *reversed(RISKS)))}
    rows = sorted(KINDS.items(), key=lambda item: (order[item[1].bump], order[item[1].risk]))
    return format_page(
        "Changes between versions",
        "unitools/changes/kinds.py and unitools/compatibility/kinds.py",
        "What `python -m unitools diff`, registration and the review page call each change of a manifest, and the part of the "
        "version number that it moves. A reviewer confirms each change of high risk. Why: "
        "[How versions are compared](../explanation/versions.md).",
        "## Fields",
        format_table(
            ("kind", "needs", "risk", "meaning"),
            [
                (format_code(kind), known.bump, known.risk, known.text.format(before="A", after="B"))
                for kind, known in rows
            ],
        ),
        "## Schemas",
        "`input.*` is about `input_schema`, `config_schema.*` about what tenants set, `output.*` about `output_schema`. What a change "
        "needs depends on what it does to the values that are valid:",
        format_table(
            ("effect", "", "input, configuration", "output"),
            [
                (format_code(effect), text, compute_bump(effect, "input"), compute_bump(effect, "output"))
                for effect, text in EFFECTS.items()
            ],
        ),
        format_table(
            ("kind", "meaning"),
            [
                (
                    format_code(kind),
                    text.replace("`{before}` ", "").replace("`{after}` ", "").replace("the property", "a property"),
                )
                for kind, text in SCHEMA_KINDS.items()
            ],
        ),
        "Risk: `high` for what cannot be compared; `medium` for what breaks, and for texts of the input, which models "
        "read; else `low`.",
    )
