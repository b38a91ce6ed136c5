"""Tool search: the tools that the words of a question lead to, the best first.

The database finds the words: by full text search in PostgreSQL, in a column that is generated from the version's words; by FTS5 in
SQLite, in a table that triggers keep. Both bring words to their stems, within the transaction that registers the version. A word
counts for more the fewer tools of the tenant have it, and for more in a name than in a description; tools of other
tenants change nothing.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import TYPE_CHECKING

from django.db import connection

from kernel.database.triggers import Trigger, install_triggers

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.db.backends.base.base import BaseDatabaseWrapper

    from kernel.principal import Principal
    from unitools.manifest import Manifest

MAX_WORDS = 32
# That say nothing of what is looked for. PostgreSQL leaves them out by itself, and FTS5 does not.
SAYS_NOTHING = (
    "a an and are as at be by can do for from has have how i in into is it its me my not of on or that the this to was what "
    "when where which who will with you your"
)
_SKIPPED = frozenset(SAYS_NOTHING.split())
IN_TITLE = 3  # how much more a word of a name, a title or a tag counts
# Scripts without spaces between words: each character is looked up by itself, and those of one word one after the other.
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

IN_POSTGRESQL = """
SELECT i.name, w.place, ts_filter(v.words, '{a}') @@ w.query
  FROM registry_installation i JOIN registry_toolversion v ON v.id = i.version_id
  JOIN (SELECT place, phraseto_tsquery('english', word) AS query
          FROM unnest(%s::text[]) WITH ORDINALITY AS said(word, place)) w ON v.words @@ w.query
 WHERE i.tenant_id = %s AND i.state <> 'removed'
"""
IN_SQLITE = """
SELECT i.name, max(w.title)
  FROM registry_installation i
  JOIN (SELECT version_id, 0 AS title FROM registry_toolwords WHERE registry_toolwords MATCH %s
        UNION ALL SELECT version_id, 1 FROM registry_toolwords WHERE registry_toolwords MATCH %s) w
    ON w.version_id = i.version_id
 WHERE i.tenant_id = %s AND i.state <> 'removed' GROUP BY i.name
"""
TRIGGERS = (
    Trigger(
        "registry_toolversion",
        "toolhub_words_added",
        "CREATE TRIGGER toolhub_words_added AFTER INSERT ON registry_toolversion BEGIN "
        "INSERT INTO registry_toolwords (version_id, title, text) VALUES (NEW.id, NEW.title_words, NEW.text_words); END",
    ),
    Trigger(
        "registry_toolversion",
        "toolhub_words_removed",
        "CREATE TRIGGER toolhub_words_removed AFTER DELETE ON registry_toolversion BEGIN "
        "DELETE FROM registry_toolwords WHERE version_id = OLD.id; END",
    ),
)


def install_search_triggers(connection: BaseDatabaseWrapper) -> None:
    """After each migration: SQLite loses the triggers of a table that is altered. PostgreSQL generates its column."""
    if connection.vendor != "postgresql":
        install_triggers(connection, TRIGGERS)


def tokenize_text(text: str) -> list[str]:
    """The words of a text without case and accents, in its order; of scripts without spaces whole runs, their characters apart."""
    plain = "".join(
        each for each in unicodedata.normalize("NFKD", _HUMP.sub(" ", text)) if not unicodedata.combining(each)
    )
    found = _WORD.findall(unicodedata.normalize("NFC", plain).lower())
    return [" ".join(word) if re.match(f"[{_UNSPACED}]", word) else word for word in found]


def searched_fields(manifest: Manifest) -> dict[str, str]:
    """The words of a version that searches look for, as :class:`registry.models.ToolVersion` keeps them."""
    said = manifest.localizations.values()  # of all languages: people look for a tool by words of theirs
    first = [manifest.id, manifest.display_name, *(each.get("display_name", "") for each in said), *manifest.tags]
    takes = manifest.document.get("input_schema", {}).get("properties", {})  # an upgrade meets documents of any age
    texts = [manifest.description, *(each.get("description", "") for each in said)]
    examples = [*manifest.examples, *(example for each in said for example in each.get("examples", ()))]
    then = [*texts, *examples, *takes]
    return {"title_words": _joined(first), "text_words": _joined(then)}


def _joined(texts: Iterable[str]) -> str:
    return " ".join(word for text in texts for word in tokenize_text(text))


def search_installed(q: str, *, by: Principal) -> list[str]:
    """The ids of the tenant's tools that have any of the words, the best match first; of equal ones by id."""
    words = [word for word in dict.fromkeys(tokenize_text(q)) if word not in _SKIPPED][:MAX_WORDS]
    if not words:
        return []
    look = _in_postgresql if connection.vendor == "postgresql" else _in_sqlite
    found: dict[int, dict[str, bool]] = {}
    for name, place, in_title in look(words, by.tenant_id):
        found.setdefault(place, {})[name] = in_title
    tools = len({name for names in found.values() for name in names})
    scores: dict[str, float] = {}
    for _, names in sorted(found.items()):
        rarity = math.log(1 + tools / len(names))
        for name, in_title in names.items():
            scores[name] = scores.get(name, 0.0) + rarity * (IN_TITLE if in_title else 1)
    return sorted(scores, key=lambda name: (-scores[name], name))


def _in_postgresql(words: list[str], tenant_id: UUID) -> list[tuple[str, int, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(IN_POSTGRESQL, [words, tenant_id])
        found: list[tuple[str, int, bool]] = cursor.fetchall()
    return found


def _in_sqlite(words: list[str], tenant_id: UUID) -> list[tuple[str, int, bool]]:
    found = []
    with connection.cursor() as cursor:
        for place, word in enumerate(words):
            cursor.execute(IN_SQLITE, [f'"{word}"', f'title : "{word}"', tenant_id.hex])
            found += [(name, place, bool(in_title)) for name, in_title in cursor.fetchall()]
    return found
