"""Statements of SQLite: how one that is a constant, or was built from models once, is put to it.

SQLite keeps what it has prepared of a text by itself, for as long as the connection is open. Places are written as PostgreSQL's driver
has them, and values as Python has them; both are turned into what SQLite understands here.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.database.prepared_statements import Parameters

_PLACE = re.compile(r"%(?:[%s]|\((\w+)\)s)")


@cache  # statements are constants, or built from models once
def name_places(statement: bytes) -> str:
    """With ``?`` for ``%s``, and ``:name`` for ``%(name)s``."""
    return _PLACE.sub(_name_place, statement.decode())


def _name_place(found: re.Match[str]) -> str:
    if found[0] == "%%":
        return "%"
    return f":{found[1]}" if found[1] else "?"


def write_parameters(parameters: Parameters) -> Mapping[str, Any] | Sequence[Any]:
    if isinstance(parameters, dict):
        return {name: _write(value) for name, value in parameters.items()}
    return [_write(value) for value in parameters]


def _write(value: Any) -> Any:
    """As Django writes it into the columns of SQLite; a list as the JSON that ``json_each`` reads."""
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return str(value.astimezone(UTC).replace(tzinfo=None))
    if isinstance(value, list):
        return json.dumps(value, default=_write)
    return value
