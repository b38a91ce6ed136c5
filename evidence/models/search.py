"""Search models: which facts have what in common, and which searches are kept.

The index of the search engine. Of each tag (:mod:`evidence.search.tags`) a :class:`Posting` says which leaves of a log have it:
one row for each ``BLOCK`` leaves, in a few bytes. Tags that are in few places lie together (:class:`PostingBucket`). The index follows
the log and can be made again from it at any time.
"""

from __future__ import annotations

from django.db import models

from kernel.ids import encode, new_id


class Indexed(models.Model):
    """The first ``size`` leaves of a tenant's log are in the index. Of the first ``merged`` the buckets have been put together as far
    as they can be. Whoever writes to the index of a tenant has this row locked.
    """

    tenant_id = models.UUIDField(primary_key=True)
    size = models.BigIntegerField(default=0)
    merged = models.BigIntegerField(default=0, db_default=0)

    def __str__(self) -> str:
        return f"{self.size} of {self.tenant_id}"


class IndexBlock(models.Model):
    """Between which ids, and so between which moments, the facts of a block are."""

    pk = models.CompositePrimaryKey("tenant_id", "number")
    tenant_id = models.UUIDField()
    number = models.IntegerField()
    first_id = models.UUIDField()
    last_id = models.UUIDField()

    def __str__(self) -> str:
        return f"block {self.number} of {self.tenant_id}"


class Posting(models.Model):
    """The leaves of a block that have the tag: ``places`` as :mod:`evidence.search.postings` writes them."""

    pk = models.CompositePrimaryKey("tenant_id", "tag", "block")
    tenant_id = models.UUIDField()
    tag = models.BinaryField()  # so that every database sorts them alike and a prefix is a range
    block = models.IntegerField()
    places = models.BinaryField()

    def __str__(self) -> str:
        return f"{bytes(self.tag)!r} in block {self.block} of {self.tenant_id}"


class PostingBucket(models.Model):
    """Some of the tags that are in few leaves of a span, which begins with the leaf ``first``, with those leaves
    (:mod:`evidence.search.buckets`)."""

    pk = models.CompositePrimaryKey("tenant_id", "level", "part", "first")
    tenant_id = models.UUIDField()
    level = models.SmallIntegerField()
    part = models.IntegerField()
    first = models.BigIntegerField()
    content = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.part} of level {self.level} from leaf {self.first} of {self.tenant_id}"


class SavedSearch(models.Model):
    """A question that somebody asks again; shared with the tenant or their own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant_id = models.UUIDField()
    owner = models.CharField(max_length=64)  # usr_…
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=1000)
    shared = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant_id", "owner", "name"], name="saved_search_each_name_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def wire_id(self) -> str:
        return encode("qry", self.id)
