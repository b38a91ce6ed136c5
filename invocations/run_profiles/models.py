"""Run profile model: what a call may reach, under its digest."""

from __future__ import annotations

from django.db import models


class RunProfile(models.Model):
    """Calls of one tool under the same rules may reach the same: their rows and facts have the digest, and this has the document.

    Of each tenant its own, so that a digest tells nobody what another tenant's calls may reach.
    """

    pk = models.CompositePrimaryKey("tenant_id", "digest")
    tenant_id = models.UUIDField()
    digest = models.CharField(max_length=71)
    document = models.JSONField()

    def __str__(self) -> str:
        return self.digest
