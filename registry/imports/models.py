"""Import models: what a tenant brings of one source, from what the source says of itself to the drafts that are submitted."""

from __future__ import annotations

import zlib
from typing import Any

from django.db import models
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, NullIf
from django.utils.translation import gettext_lazy

from access.models import Tenant
from kernel.ids import encode, new_id

_NAMES = ("title", "url", "package")  # of a source, one of which says what people call it


class ImportKind(models.TextChoices):
    OPENAPI = "openapi", gettext_lazy("OpenAPI document")
    REMOTE = "remote", gettext_lazy("MCP server elsewhere")
    PACKAGE = "package", gettext_lazy("MCP server of a package")


class ImportState(models.TextChoices):
    LISTING = "listing"  # a worker starts the server in a box, to see what it lists
    FAILED = "failed"
    READ = "read"


class ArrayLength(models.Func):
    """How many entries a list has, counted where it is."""

    function = "jsonb_array_length"
    output_field = models.IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        return self.as_sql(compiler, connection, function="json_array_length", **more)


class ImportQuerySet(models.QuerySet["Import"]):
    def for_lists(self) -> ImportQuerySet:
        """Without what is long: a lock stands in the source and in each draft. It is counted, and the name read, where it is."""
        names = [NullIf(KeyTextTransform(each, "source"), models.Value("")) for each in _NAMES]
        read: dict[str, Any] = {
            "source_name": Coalesce(*names, "group", output_field=models.CharField()),
            "offered_count": ArrayLength("offered"),
            "draft_count": ArrayLength("drafts"),
        }
        return self.defer("source", "content", "offered", "drafts", "made").annotate(**read)


class Import(models.Model):
    """One source of tools, and the drafts that are made of it. The group is what its tools stand under, and its name in a tenant.

    It is work in progress, and no version: what is submitted becomes one, and is reviewed as any other.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="imports")
    kind = models.CharField(max_length=8, choices=ImportKind)
    group = models.CharField(max_length=120)
    state = models.CharField(max_length=8, choices=ImportState)
    source = models.JSONField(default=dict)  # where it comes from, and what a person chose beside it
    content = models.BinaryField(default=bytes)  # the document, or what the server lists; packed
    digest = models.CharField(max_length=71, blank=True)  # of the document's bytes, or of the listing
    offered = models.JSONField(default=list)  # {name, place, effect, tags, text} of each operation or tool
    wanted = models.JSONField(default=list)  # names of which drafts are made as soon as the source has been read
    drafts = models.JSONField(default=list)  # registry.imports.drafts.ImportDraft
    unproposed = models.PositiveIntegerField(default=0)  # brought tools that are otherwise now, beyond the drafts
    refusals = models.JSONField(
        default=list
    )  # {name, pointer, message, remedy}: of what no draft could be made the last time
    made = models.JSONField(
        default=dict
    )  # what the source alone made of each version that was submitted, of a document with the choices beside it
    failure = models.JSONField(default=dict)  # {code, message, remedy, output}
    progress = models.JSONField(default=list)
    attempt = models.PositiveIntegerField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    started_by = models.CharField(max_length=64)
    started_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    source_name = ""  # of a list: what it has read of the source, which it leaves out
    offered_count: int
    draft_count: int

    objects = ImportQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["tenant", "group"], name="import_group_once_in_a_tenant")]
        indexes = [models.Index(fields=["state", "started_at"], name="import_by_state")]

    def __str__(self) -> str:
        return self.group

    @property
    def wire_id(self) -> str:
        return encode("imp", self.id)

    @property
    def name(self) -> str:
        """What a person calls the source."""
        return self.source_name or str(next(filter(None, map(self.source.get, _NAMES)), self.group))

    @property
    def undrafted(self) -> list[dict[str, str]]:
        """Of what no draft can be made: what the document does not let be read, and what was chosen the last time."""
        return [*self.source.get("unread", []), *self.refusals]

    def pack_content(self, data: bytes) -> None:
        self.content = zlib.compress(data, 6)

    def unpack_content(self) -> bytes:
        return zlib.decompress(bytes(self.content))
