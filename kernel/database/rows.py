"""Rows: how those of every call are written and read without their SQL being worked out each time.

Django builds the text of a statement anew whenever it is used, which takes longer than the database needs to run it. These build
it once a process, and have it prepared (:mod:`kernel.database.prepared_statements`).
No model signals are sent. Conditions are equal values, None, or ``…__in`` for any of a list.
"""

from __future__ import annotations

from datetime import datetime
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import BooleanField, CharField, DateTimeField, Field, ForeignKey, Model, TextField, UUIDField
from django.db.models.query import get_related_populators

from kernel.database.postgresql.expectations import UnmetExpectation
from kernel.database.prepared_statements import (
    execute_prepared,
    execute_prepared_later,
    fetch_prepared_later,
    fetch_prepared_together,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models import QuerySet

    from kernel.database.postgresql.base import LaterRows

Row = TypeVar("Row", bound=Model)
ANY_OF = "__in"
# By engine, which values of which fields Django writes as they are; of times those with a zone.
AS_IT_IS: dict[str, dict[type[Field[Any, Any]], type]] = {
    "postgresql": {CharField: str, TextField: str, BooleanField: bool, UUIDField: UUID, DateTimeField: datetime},
    "sqlite": {CharField: str, TextField: str, BooleanField: bool},
}
# In one parameter, so that the text is the same for any number of values.
_IS_ANY_OF = {"postgresql": "= ANY(%s)", "sqlite": "IN (SELECT value FROM json_each(%s))"}


def _connection() -> BaseDatabaseWrapper:
    """The connection itself: to go by way of Django's proxy takes long, when each column asks it something."""
    return connections[DEFAULT_DB_ALIAS]


def _field(model: type[Model], name: str) -> Field[Any, Any]:
    return model._meta.get_field(name)  # type: ignore[return-value]


@lru_cache
def _insert(model: type[Model]) -> bytes:
    columns = [str(field.column) for field in model._meta.concrete_fields]
    places = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) VALUES ({places})".encode()  # noqa: S608  names only


def write_row_columns(model: type[Model], **expressions: str) -> tuple[str, str]:
    """What an ``INSERT … SELECT`` names: the columns, and for each its expression, or the place of the value of its field."""
    columns, places = [], []
    for field in model._meta.concrete_fields:
        columns.append(str(field.column))
        kind = field.db_type(_connection())
        places.append(expressions.get(field.name, f"%({field.name})s::{kind}"))
    return ", ".join(columns), ", ".join(places)


def get_row_values(row: Model, *, except_for: Container[str] = ()) -> dict[str, Any]:
    """The values of its fields by their names, as the database takes them."""
    connection = _connection()
    return {
        field.name: field.get_db_prep_save(field.pre_save(row, True), connection)
        for field in row._meta.concrete_fields
        if field.name not in except_for
    }


def insert_row(row: Row) -> Row:
    """As ``row.save(force_insert=True)``, by the next statement of this transaction that asks for something, or its end."""
    connection = _connection()
    execute_prepared_later(_insert(type(row)), _values(row, connection))
    return _written(row, connection)


def _written(row: Row, connection: BaseDatabaseWrapper) -> Row:
    row._state.adding, row._state.db = False, connection.alias
    return row


def _values(row: Model, connection: BaseDatabaseWrapper) -> list[Any]:
    assert row._state.adding, "a row is written once"
    values = []
    for name, kind, field in _plan_values(type(row), connection.vendor):
        value = getattr(row, name)
        is_as_it_is = type(value) is kind and (kind is not datetime or cast("datetime", value).tzinfo is not None)
        if kind is None or not (value is None or is_as_it_is):
            value = field.get_db_prep_save(field.pre_save(row, True), connection)
        values.append(value)
    return values


@lru_cache
def _plan_values(model: type[Model], vendor: str) -> list[tuple[str, type | None, Field[Any, Any]]]:
    """Of each field: where its value is, and of which type one is that Django would hand to this database as it is."""
    kinds = AS_IT_IS[vendor]
    found: list[tuple[str, type | None, Field[Any, Any]]] = []
    for field in model._meta.concrete_fields:
        target: Any = field
        while isinstance(target, ForeignKey):
            target = target.target_field
        is_set_by_field = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
        found.append((field.attname, None if is_set_by_field else kinds.get(type(target)), field))
    return found


def _asked(model: type[Model], where: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """What follows WHERE, and its values."""
    said, values, is_any_of = [], [], _IS_ANY_OF[_connection().vendor]
    for name, value in where.items():
        column = _field(model, name.removesuffix(ANY_OF)).column
        if value is None:
            said.append(f"{column} IS NULL")
            continue
        said.append(f"{column} {is_any_of}" if name.endswith(ANY_OF) else f"{column} = %s")
        values.append(value)
    return " AND ".join(said), values


def update_rows(model: type[Model], where: Mapping[str, Any], changes: Mapping[str, object]) -> int:
    """As ``model.objects.filter(**where).update(**changes)``."""
    return execute_prepared(*_update(model, where, changes, _connection()))


def update_rows_later(model: type[Model], where: Mapping[str, Any], changes: Mapping[str, object]) -> None:
    """The same as :func:`insert_row` does it."""
    execute_prepared_later(*_update(model, where, changes, _connection()))


def expect_updated_row(
    model: type[Model], where: Mapping[str, Any], changes: Mapping[str, object], *, expected: str
) -> None:
    """The same, where the transaction is nothing without it: raises :class:`UnmetExpectation` there when no row was as said."""
    connection = _connection()
    if connection.vendor != "postgresql":
        if not model._default_manager.filter(**where).update(**changes):
            raise UnmetExpectation(expected)
        return
    statement, values = _update(model, where, changes, connection)
    asked = b"WITH changed AS (" + statement + b" RETURNING 1) SELECT toolhub_expect(EXISTS (SELECT FROM changed), %s)"
    execute_prepared_later(asked, [*values, expected])


def _update(
    model: type[Model], where: Mapping[str, Any], changes: Mapping[str, object], connection: BaseDatabaseWrapper
) -> tuple[bytes, list[Any]]:
    fields = {name: _field(model, name) for name in changes}
    condition, asked = _asked(model, where)
    new = ", ".join(f"{field.column} = %s" for field in fields.values())
    statement = f"UPDATE {model._meta.db_table} SET {new} WHERE {condition}"  # noqa: S608  names only
    values = [field.get_db_prep_save(changes[name], connection) for name, field in fields.items()]
    return statement.encode(), [*values, *asked]


def delete_rows_later(model: type[Model], where: Mapping[str, Any]) -> None:
    """As ``model.objects.filter(**where).delete()`` for rows that nothing refers to, as :func:`insert_row` does it."""
    condition, asked = _asked(model, where)
    execute_prepared_later(f"DELETE FROM {model._meta.db_table} WHERE {condition}".encode(), asked)  # noqa: S608  names only


class _Compiled(NamedTuple):
    """A queryset as Django's compiler has it; ``samples`` stand among its parameters where values go. ``columns`` and ``names`` are of
    the model itself, the rest of related ones.
    """

    statement: bytes
    parameters: tuple[Any, ...]
    samples: dict[str, Any]
    columns: slice
    names: list[str]
    converters: dict[int, Any]
    populators: list[Any]


def _make_sample(kind: type[UUID | str | int]) -> UUID | str | int:
    """A value that stands nowhere else in a statement. A number is one of those that Django takes for an id."""
    return 2**30 + uuid4().int % 2**30 if kind is int else kind(str(uuid4()))


class PreparedQuery(Generic[Row]):
    """Rows of a queryset that differs by ids and texts only: ``PreparedQuery(make, id=UUID)``, and then ``.get(id=…)``.

    ``make``: the queryset of these values, as Django has it.
    """

    def __init__(self, make: Callable[..., QuerySet[Row]], **types: type[UUID | str | int]) -> None:
        self.make = make
        self._samples: dict[str, Any] = {name: _make_sample(kind) for name, kind in types.items()}

    @cached_property
    def _compiled(self) -> _Compiled:
        """With samples where the values go. What is read here is what Django's own ModelIterable reads."""
        compiler = self.make(**self._samples).query.get_compiler(DEFAULT_DB_ALIAS)
        statement, parameters = compiler.as_sql()
        info, select = compiler.klass_info, compiler.select
        assert info is not None
        own = slice(info["select_fields"][0], info["select_fields"][-1] + 1)
        return _Compiled(
            statement.encode(),
            parameters,
            {name: self._write_sample(name) for name in self._samples},
            own,
            [each[0].target.attname for each in select[own]],
            compiler.get_converters([each[0] for each in select]),
            get_related_populators(info, select, DEFAULT_DB_ALIAS),  # type: ignore[call-arg]  # stubs of Django 6
        )

    def _write_sample(self, name: str) -> Any:
        """As it stands among the parameters."""
        sample = self._samples[name]
        return UUIDField().get_db_prep_value(sample, _connection()) if isinstance(sample, UUID) else sample

    def all(self, **values: Any) -> list[Row]:
        (found,) = fetch_together((self, values))
        return found

    def fill_in(self, **values: Any) -> tuple[bytes, list[Any]]:
        """The statement, and what it is asked with."""
        compiled = self._compiled
        named = {sample: values[name] for name, sample in compiled.samples.items()}
        return compiled.statement, [named.get(each, each) for each in compiled.parameters]

    def ask_later(self, **values: Any) -> LaterRows:
        """As :func:`fetch_prepared_later`, on PostgreSQL; :meth:`read` makes rows of what it finds."""
        return fetch_prepared_later(*self.fill_in(**values))

    def ask_later_for(self, **expressions: str) -> LaterRows:
        """The same with expressions of SQL in place of the values."""
        statement, values = self._written_with(tuple(expressions.items()))
        return fetch_prepared_later(statement, values)

    @lru_cache(maxsize=8)  # noqa: B019  queries are constants of their modules
    def _written_with(self, expressions: tuple[tuple[str, str], ...]) -> tuple[bytes, list[Any]]:
        compiled = self._compiled
        written = {self._samples[name]: expression.encode() for name, expression in expressions}
        first, *parts = compiled.statement.split(b"%s")
        values = [each for each in compiled.parameters if each not in written]
        for value, part in zip(compiled.parameters, parts, strict=True):
            first += written.get(value, b"%s") + part
        return first, values

    def read(self, found: list[tuple[Any, ...]]) -> list[Row]:
        connection, compiled = _connection(), self._compiled
        return [self._row(compiled, list(each), connection) for each in found]

    def _row(self, compiled: _Compiled, read: list[Any], connection: BaseDatabaseWrapper) -> Row:
        for at, (converters, expression) in compiled.converters.items():
            for convert in converters:
                read[at] = convert(read[at], expression, connection)
        row = self._model.from_db(DEFAULT_DB_ALIAS, compiled.names, read[compiled.columns])
        for populator in compiled.populators:
            populator.populate(read, row)
        return row

    @cached_property
    def _model(self) -> type[Row]:
        return self.make(**self._samples).model

    def first(self, **values: Any) -> Row | None:
        return next(iter(self.all(**values)), None)

    def get(self, **values: Any) -> Row:
        row = self.first(**values)
        if row is None:
            raise self._model.DoesNotExist  # type: ignore[attr-defined]
        return row


def fetch_together(*asked: tuple[PreparedQuery[Any], Mapping[str, Any]]) -> list[list[Any]]:
    """The rows of each of these queries with its values, in one way there and back: none may depend on what another finds."""
    found = fetch_prepared_together(*(query.fill_in(**values) for query, values in asked))
    return [query.read(rows) for (query, _), rows in zip(asked, found, strict=True)]
