"""Saved view model: a search of calls under a name, of one person."""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from kernel.ids import encode, new_id


class SavedView(models.Model):
    """``slug``: of the address, made of the name. ``query``: in the language of call search; people stand in it as keyed hashes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    # Without an index of its own: that of the constraint begins with it.
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)
    owner = models.CharField(max_length=64)  # the person
    slug = models.CharField(max_length=80)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "owner", "slug"], name="saved_view_slug_once_for_its_owner")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.owner}"

    @property
    def wire_id(self) -> str:
        return encode("viw", self.id)
