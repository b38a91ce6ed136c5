"""Index changes: is an index made and dropped beside the work on its table, also after one that was broken off?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.apps import apps
from django.db import connection, models
from django.db.migrations.state import ProjectState
from django.test.utils import CaptureQueriesContext

from kernel.database.index_changes import AddIndexBeside, RemoveIndexBeside, drop_index

if TYPE_CHECKING:
    from django.db.migrations.operations.base import Operation

pytestmark = pytest.mark.django_db(transaction=True)
NAME = "invocation_of_try"
TABLE = "invocations_invocation"


def migrate(operation: Operation, *, backwards: bool = False) -> list[str]:
    """The statements about indexes that it took, outside of a transaction."""
    before = ProjectState.from_apps(apps)
    after = before.clone()
    operation.state_forwards("invocations", after)
    with (
        CaptureQueriesContext(
            connection,
        ) as taken,
        connection.schema_editor(atomic=False) as editor,
    ):
        if backwards:
            operation.database_backwards("invocations", editor, after, before)
        else:
            operation.database_forwards("invocations", editor, before, after)
    return [each["sql"] for each in taken if " INDEX " in each["sql"]]


def columns(name: str = NAME, *, unique: bool = False) -> list[str] | None:
    """Of the index, if it is there."""
    with connection.cursor() as cursor:
        found = connection.introspection.get_constraints(cursor, TABLE).get(name)
    assert found is None or found["unique"] is unique
    return found and found["columns"]


def assert_beside(statements: list[str]) -> None:
    assert statements
    assert all(("CONCURRENTLY" in each) is (connection.vendor == "postgresql") for each in statements), statements


def test_an_index_is_made_anew_where_its_making_was_broken_off_and_goes_again() -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE INDEX {NAME} ON {TABLE} (state)")
    operation = AddIndexBeside(model_name="invocation", index=models.Index(fields=["reason"], name=NAME))

    assert_beside(migrate(operation))

    assert columns() == ["reason"]
    assert_beside(migrate(operation, backwards=True))
    assert columns() is None


@pytest.mark.parametrize("unique", [False, True])
def test_an_index_is_dropped_and_made_again(unique: bool) -> None:
    operation = drop_index(NAME, f"{TABLE} (reason)", unique=unique)

    assert_beside(migrate(operation, backwards=True))
    assert columns(unique=unique) == ["reason"]
    assert_beside(migrate(operation))
    assert_beside(migrate(operation))  # of an upgrade that was broken off

    assert columns() is None


def test_an_index_of_the_model_goes_and_comes_again() -> None:
    operation = RemoveIndexBeside(model_name="invocation", name="invocation_of_run")
    assert columns(operation.name) == ["run_step_id"]

    assert_beside(migrate(operation))
    assert columns(operation.name) is None

    assert_beside(migrate(operation, backwards=True))
    assert columns(operation.name) == ["run_step_id"]
