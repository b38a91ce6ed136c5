"""UUID text: an id as its text with hyphens, for tables that keep ids of others as text (django-guardian does)."""

from __future__ import annotations

from typing import Any

from django.db.models import CharField, Func

_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))  # SQLite keeps the 32 digits alone
_ON_SQLITE = " || '-' || ".join(f"substr(%(expressions)s, {start}, {length})" for start, length in _PARTS)


class UUIDText(Func):
    arity = 1
    output_field = CharField()
    template = "CAST(%(expressions)s AS varchar)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template=f"({_ON_SQLITE})", **context)
