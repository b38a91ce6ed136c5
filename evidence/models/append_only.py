"""Append-only models: how the ORM refuses to change evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from django.db import models

if TYPE_CHECKING:
    from kernel.principal import Principal


class AppendOnlyError(RuntimeError):
    """Somebody tried to change evidence through the ORM."""


def _refuse_change(*_: Any, **__: Any) -> NoReturn:
    raise AppendOnlyError("Evidence is not changed. Write another fact.")


def _refuse_delete(*_: Any, **__: Any) -> NoReturn:
    raise AppendOnlyError("Evidence is not deleted.")


class AppendOnlyQuerySet(models.QuerySet["Any"]):
    def visible_to(self, principal: Principal) -> Self:
        return self.filter(tenant_id=principal.tenant_id)

    update = bulk_update = _update = _refuse_change
    delete = _raw_delete = _refuse_delete

    def bulk_create(self, objs: Any, *args: Any, update_conflicts: bool = False, **kwargs: Any) -> list[Any]:
        if update_conflicts:
            _refuse_change()
        return super().bulk_create(objs, *args, **kwargs)


class AppendOnlyModel(models.Model):
    """A row is written once. ``objects`` is also what Django itself uses for it: saving, deleting, related managers."""

    objects = AppendOnlyQuerySet.as_manager()
    any_type_is_read = True  # what somebody has put into a row past the hub keeps nobody from reading the others

    class Meta:
        abstract = True
        base_manager_name = "objects"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            _refuse_change()
        kwargs["force_insert"] = True
        super().save(*args, **kwargs)

    def save_base(self, raw: bool = False, *args: Any, **kwargs: Any) -> None:
        """``raw``: a fixture, which would update the row that is there."""
        super().save_base(raw, *args, **(kwargs | {"force_insert": True}))

    delete = _refuse_delete
