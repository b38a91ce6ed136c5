"""Log over REST: the addresses at which an auditor's program reads it.

The tenant's log is that of the key: its facts are nobody else's. Of the global log everybody may have checkpoints and tiles, which
are hashes; its leaves say which tenants there are and how much each does, so nobody gets them but as a proof of one's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from evidence.log import reader
from evidence.log.state import log_state
from evidence.models import GLOBAL_LOG, Fact
from evidence.problems import NoSuchTree
from evidence.verify import tiles
from evidence.verify.merkle import HASH_BYTES, TILE_WIDTH
from evidence.verify.problems import MalformedEvidence
from kernel.database.tenancy import hub_wide
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import QuerySerializer, build_envelope_serializer
from kernel.http.console import public
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.problems import NotFound

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest
    from rest_framework.request import Request

    from evidence.models import Checkpoint

SCOPE = "evidence:read"
TEXT, BYTES = "text/plain; charset=utf-8", "application/octet-stream"
FOR_EVER = "max-age=31536000, immutable"  # a tile never changes; a longer one has another name
MOST_LEAVES = 2**63 - 1


def text_answer(text: str) -> HttpResponse:
    return HttpResponse(text, content_type=TEXT, headers={"Cache-Control": "no-cache"})


class TreeSerializer(QuerySerializer):
    size = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_LEAVES,
        help_text="Of the tree: a checkpoint's. Without it, that of the newest.",
    )


class TwoTreesSerializer(TreeSerializer):
    old = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=MOST_LEAVES, help_text="The size of the older checkpoint."
    )


def _tile_answer(tenant_id: UUID, path: str, *, entries: bool, who: str) -> HttpResponse:
    try:
        place = tiles.TilePath.parse(f"tile/{path}")
    except MalformedEvidence as error:
        raise NotFound(str(error)) from error
    if place.level == tiles.ENTRIES and not entries:
        raise NotFound(
            gettext_noop("The leaves of this log are not public: they would show what each tenant does, and how much.")
        )
    if place.level == tiles.ENTRIES:
        first = place.n * TILE_WIDTH
        leaves = [leaf for _, leaf, _ in reader.iter_leaves(tenant_id, first, first + place.width)]
        content, whole = tiles.pack_entries(leaves), len(leaves) == place.width
    else:
        content = (reader.read_tile(tenant_id, place.level, place.n) or b"")[: place.width * HASH_BYTES]
        whole = len(content) == place.width * HASH_BYTES
    if not whole:
        raise NoSuchTree("This log has no such tile yet.")
    return HttpResponse(content, content_type=BYTES, headers={"Cache-Control": f"{who}, {FOR_EVER}"})


class LogSerializer(serializers.Serializer[Any]):
    origin = serializers.CharField()
    size = serializers.IntegerField()
    checkpoint = serializers.CharField()
    vkeys = serializers.ListField(child=serializers.CharField())
    pending = serializers.IntegerField()
    pending_since = serializers.DateTimeField(allow_null=True)


class LogView(Endpoint):
    """The tenant's log: its name, its newest checkpoint, the keys that it is verified with, and what is not sealed yet."""

    required_scope = SCOPE

    @extend_schema(operation_id="read_log", responses={200: build_envelope_serializer("LogEnvelope", LogSerializer())})
    def get(self, request: Request) -> Response:
        tenant_id = get_caller(request).tenant_id
        newest, state = reader.latest_checkpoint(tenant_id), log_state(tenant_id)
        origin = reader.load_origin(tenant_id)
        data: dict[str, Any] = {
            "origin": origin,
            "size": newest.size if newest else 0,
            "checkpoint": newest.note if newest else "",
            "vkeys": reader.list_vkeys(origin),
            "pending": state.pending,
            "pending_since": state.oldest.isoformat() if state.oldest else None,
        }
        return Response(ResponseEnvelope(data=data).to_json())


class LogCheckpointView(Endpoint):
    """The newest checkpoint of the tenant's log, or the one of a size: a signed note (c2sp.org/tlog-checkpoint)."""

    required_scope = SCOPE
    query = TreeSerializer

    @extend_schema(operation_id="read_checkpoint", responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        return text_answer(reader.checkpoint_at(get_caller(request).tenant_id, self.asked.get("size")).note)


class LogTileView(Endpoint):
    """A tile of the tenant's log (c2sp.org/tlog-tiles): `<L>/<N>[.p/<W>]` of hashes, `entries/<N>[.p/<W>]` of leaves."""

    required_scope = SCOPE

    @extend_schema(operation_id="read_tile", responses={(200, BYTES): OpenApiTypes.BINARY})
    def get(self, request: Request, tile: str) -> HttpResponse:
        return _tile_answer(get_caller(request).tenant_id, tile, entries=True, who="private")


class LogConsistencyView(Endpoint):
    """That the tenant's log continues its first `old` leaves: `old`, the hashes, and the newer checkpoint, as c2sp.org/tlog-witness
    writes them.
    """

    required_scope = SCOPE
    query = TwoTreesSerializer

    @extend_schema(
        operation_id="prove_consistency",
        responses={(200, "text/plain"): OpenApiTypes.STR},
    )
    def get(self, request: Request) -> HttpResponse:
        older, size = self.asked["old"], self.asked.get("size")
        return text_answer(reader.build_consistency_proof(get_caller(request).tenant_id, older, size))


def _anchor_of(checkpoint: Checkpoint) -> str:
    with hub_wide():
        return reader.build_anchor_proof(checkpoint)


class LogAnchorView(Endpoint):
    """That a checkpoint of the tenant is in the global log, whose checkpoint witnesses sign: a tlog-proof of the checkpoint's text."""

    required_scope = SCOPE
    query = TreeSerializer

    @extend_schema(operation_id="prove_checkpoint", responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request) -> HttpResponse:
        return text_answer(_anchor_of(reader.checkpoint_at(get_caller(request).tenant_id, self.asked.get("size"))))


class FactProofView(Endpoint):
    """That a fact of the tenant is in its log: a proof as text (c2sp.org/tlog-proof), with the newest checkpoint."""

    required_scope = SCOPE
    query = TreeSerializer

    @extend_schema(operation_id="prove_fact", responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, fact_id: UUID) -> HttpResponse:
        fact = Fact.objects.visible_to(get_caller(request)).get(pk=fact_id)
        return text_answer(reader.build_inclusion_proof(fact, size=self.asked.get("size")))


@require_GET
@public
def global_checkpoint(request: HttpRequest) -> HttpResponse:
    """The newest checkpoint of the global log, with the signatures of its witnesses."""
    del request
    with hub_wide():
        return text_answer(reader.checkpoint_at(GLOBAL_LOG).note)


@require_GET
@public
def global_keys(request: HttpRequest) -> HttpResponse:
    """The keys of the global log, one a line. Whoever verifies has them from elsewhere: this address can lie like any other."""
    del request
    with hub_wide():
        return text_answer("".join(f"{vkey}\n" for vkey in reader.list_vkeys(reader.load_origin(GLOBAL_LOG))))


@require_GET
@public
def global_tile(request: HttpRequest, tile: str) -> HttpResponse:
    """A tile of the global log; hashes only."""
    del request
    with hub_wide():
        return _tile_answer(GLOBAL_LOG, tile, entries=False, who="public")
