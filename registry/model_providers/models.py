"""Model provider models: where a tenant's models are, and how they are reached."""

from __future__ import annotations

from django.db import models

from access.models import Tenant
from kernel.ids import encode, new_id


class ModelProviderState(models.TextChoices):
    ENABLED = "enabled"
    PAUSED = "paused"


class ModelProvider(models.Model):
    """Who answers the calls of some of a tenant's models. The models themselves are tools of the kind ``model``.

    ``secret`` is the tenant's name of the one that holds the key. ``settings``: :mod:`registry.model_providers.settings`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="model_providers")
    name = models.CharField(max_length=40)  # second segment of the names of its models
    kind = models.CharField(max_length=40)  # llm.provider_factory
    address = models.CharField(max_length=500, blank=True)  # empty: the usual one of its kind, or none
    secret = models.CharField(max_length=80, blank=True)  # empty: it needs no key
    settings = models.JSONField(default=dict)
    data_classes = models.JSONField(default=list)  # which classes of data it may be sent
    state = models.CharField(max_length=8, choices=ModelProviderState, default=ModelProviderState.ENABLED)
    reason = models.CharField(max_length=500, blank=True)
    changed_by = models.CharField(max_length=64)
    changed_at = models.DateTimeField(auto_now=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "name"], name="model_provider_name_once_in_a_tenant")]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("mpr", self.id)

    @property
    def urn(self) -> str:
        return f"soul:provider:{self.name}"


class ModelCircuitState(models.TextChoices):
    """Whether a model's provider is asked."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class ModelCircuit(models.Model):
    """That a provider's model has failed since it last answered; one that works has no row.

    ``opened``: how often in a row. ``trying_until``: how long the one call that tries has, when the circuit is half open.
    """

    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    provider = models.ForeignKey(ModelProvider, models.CASCADE, related_name="circuits")
    model = models.CharField(max_length=200)  # the provider's own name
    failures = models.PositiveIntegerField(default=0)
    opened = models.PositiveIntegerField(default=0)
    open_until = models.DateTimeField(null=True)
    trying_until = models.DateTimeField(null=True)
    why = models.CharField(max_length=60, blank=True)  # reason of the last failure

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="model_circuit_once_of_a_model")]

    def __str__(self) -> str:
        return f"{self.provider_id}:{self.model}"
