"""Search models: which facts have what in common, and which searches are kept.

The index of the search engine. Of each tag (:mod:`evidence.search.tags`) a :class:`Posting` says which leaves of a log have it:
one row for each ``BLOCK`` leaves, in a few bytes. Of blocks that are closed, what few leaves have lies together in a
:class:`PostingPage`. It follows the log and can be made again from it at any time.
"""

from __future__ import annotations

from django.db import models

from kernel.ids import encode, new_id


class Indexed(models.Model):
    """The first ``size`` leaves of a tenant's log are in the index."""

    tenant_id = models.UUIDField(primary_key=True)
    size = models.BigIntegerField(default=0)

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
    tag = models.BinaryField()  # UTF-8; bytes, so that every database sorts them alike and a prefix is a range
    block = models.IntegerField()
    places = models.BinaryField()

    def __str__(self) -> str:
        return f"{bytes(self.tag).decode()} in block {self.block} of {self.tenant_id}"


class ClosedRange(models.Model):
    """Blocks to which nothing is added any more: what few leaves of theirs have is in pages, or is being put there.

    ``closed_at``: long before the first entry leaves its row, so that whoever reads rows knows that there may be pages.
    """

    pk = models.CompositePrimaryKey("tenant_id", "first_block")
    tenant_id = models.UUIDField()
    first_block = models.IntegerField()
    last_block = models.IntegerField()
    tag = models.BinaryField(default=bytes)  # entries up to this one, and its block, are in pages
    block = models.IntegerField(default=0)
    closed_at = models.DateTimeField()
    is_packed = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"blocks {self.first_block} to {self.last_block} of {self.tenant_id}"


class PostingPage(models.Model):
    """Postings of a range of closed blocks, as :mod:`evidence.search.posting_pages` writes them, from this tag and block on."""

    pk = models.CompositePrimaryKey("tenant_id", "first_block", "tag", "block")
    tenant_id = models.UUIDField()
    first_block = models.IntegerField()  # of the range
    tag = models.BinaryField()
    block = models.IntegerField()
    content = models.BinaryField()

    def __str__(self) -> str:
        return f"from {bytes(self.tag).decode()} in block {self.block} of {self.tenant_id}"


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
