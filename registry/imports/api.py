"""Imports over REST: how programs bring tools of others, from the source to the versions that wait for their review.

The services are those of the console, and so are their rules: nothing is chosen beforehand, and what is submitted is an ordinary
version.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    ObjectField,
    PageSerializer,
    PatternField,
    StrictSerializer,
    WebAddressField,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.parsers import StrictJSONParser, WideJSONParser
from kernel.problems import SchemaInvalid
from registry.imports import services, submissions
from registry.imports import sources as texts
from registry.imports.drafts import is_otherwise
from registry.imports.models import Import, ImportKind, ImportState
from registry.imports.offers import filter_offers
from registry.secrets.services import MAX_BYTES, MIN_CHARACTERS
from registry.tools.api import SubmittedSerializer, submitted_json
from unitools.brought_tools import MAX_CHOSEN
from unitools.openapi.documents import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

    from registry.imports.drafts import ImportDraft

SCOPE = "tools:register"
MAX_NAME = 300
MAX_ENCODED = 4 * (-(-MAX_DOCUMENT_BYTES // 3))
# Of an import, left out of what is answered.
LONG_FIELDS = ("content", "made")


class DocumentParser(WideJSONParser):
    """Takes a document in base64, as large as the console takes it."""

    max_bytes = MAX_ENCODED + StrictJSONParser.max_bytes


class ImportSummarySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(ImportKind.choices)
    group = serializers.CharField(help_text="What its tools stand under.")
    name = serializers.CharField(help_text="What people call the source.")
    state = serializers.ChoiceField(
        ImportState.choices, help_text="`listing`: a worker starts the server of a package."
    )
    digest = serializers.CharField(allow_null=True, help_text="Of the document, or of what the server lists.")
    offered = serializers.IntegerField(help_text="So many operations or tools it has.")
    drafted = serializers.IntegerField(help_text="So many of them are drafts.")
    failure = serializers.DictField(
        allow_null=True, help_text="Why it could not be read: code, message, remedy, output."
    )
    started_by = serializers.CharField()
    started_at = serializers.DateTimeField()
    read_at = serializers.DateTimeField(allow_null=True)


class ImportDraftSerializer(serializers.Serializer[Any]):
    tool = serializers.CharField(help_text="The id that the tool is to have.")
    name = serializers.CharField(help_text="Its name at the source.")
    document = serializers.DictField(help_text="The manifest that is submitted.")
    base = serializers.CharField(help_text="The version that it changes; empty: a new tool.", allow_blank=True)
    is_same = serializers.BooleanField(help_text="Nothing of it is otherwise than in that version.")
    changes = serializers.ListField(child=serializers.DictField())
    notes = serializers.ListField(child=serializers.DictField())
    proposed = serializers.DictField(help_text="The effect that the source proposes.")
    reason = serializers.CharField(allow_blank=True, help_text="Why another effect was chosen.")
    chosen_by = serializers.CharField(allow_blank=True)
    edited_by = serializers.ListField(child=serializers.CharField())


class WholeImportSerializer(ImportSummarySerializer):
    drafts = ImportDraftSerializer(many=True)
    refusals = serializers.ListField(
        child=serializers.DictField(),
        help_text="Of what no draft could be made the last time, and what cannot be read: pointer, message, remedy.",
    )
    unproposed = serializers.IntegerField(help_text="So many more tools that were brought are otherwise now.")
    gone = serializers.ListField(
        child=serializers.CharField(), help_text="Names that were brought and are not there any more."
    )


class ImportOfferSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    place = serializers.CharField(allow_blank=True, help_text="Method and path of an operation.")
    effect = serializers.CharField(help_text="That the source proposes.")
    tags = serializers.ListField(child=serializers.CharField())
    text = serializers.CharField(allow_blank=True)
    drafted = serializers.BooleanField()


class ImportOfferQuerySerializer(PageSerializer):
    q = serializers.CharField(required=False, max_length=200, help_text="Words of the name, the place or the text.")
    tag = serializers.CharField(required=False, max_length=200)
    effect = serializers.ChoiceField(["Read", "Write"], required=False)


def _lines(pattern: str, wanted: str) -> serializers.ListField:
    child = PatternField(pattern, wanted=wanted, max_length=texts.MAX_LINE_CHARS)
    return serializers.ListField(child=child, required=False, default=list, max_length=texts.MAX_LINES)


class ImportSourceSerializer(StrictSerializer):
    group = PatternField(
        r"^([a-z][a-z0-9_]{0,40}[.][a-z][a-z0-9_]{0,40})?$",
        wanted="two words of small letters, digits and _ with a dot between",
        required=False,
        default="",
        allow_blank=True,
        help_text="What the tools stand under. Made of the name of the source if empty.",
    )
    wanted = serializers.ListField(
        child=serializers.CharField(max_length=MAX_NAME),
        required=False,
        default=list,
        max_length=MAX_CHOSEN,
        help_text="Names of operations or tools of which drafts are made at once.",
    )


@extend_schema_field({"type": "string", "format": "openapi-document", "maxLength": MAX_ENCODED})
class EncodedDocumentField(serializers.CharField):
    """A document in base64."""


class DocumentSourceSerializer(ImportSourceSerializer):
    document = EncodedDocumentField(
        max_length=MAX_ENCODED, help_text="OpenAPI 3.1, 3.0 or Swagger 2.0, as JSON or YAML, in base64."
    )
    servers = serializers.ListField(
        child=WebAddressField(max_length=texts.MAX_LINE_CHARS),
        required=False,
        default=list,
        max_length=texts.MAX_LINES,
        help_text="The https address, where the document names several, one with variables, or none.",
    )
    secrets = _lines(r"^([A-Z][A-Z0-9_]{0,63}|account)(=.+)?$", "NAME or NAME=HOW, with NAME in capitals, or account")
    idempotency_header = PatternField(
        r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{0,100}$",
        wanted="the name of a header",
        required=False,
        default="",
        allow_blank=True,
    )


class RemoteSourceSerializer(ImportSourceSerializer):
    url = WebAddressField(max_length=500, help_text="Of a server that speaks MCP over HTTP.")
    secret = PatternField(
        r"^([A-Z][A-Z0-9_]{0,63}(=(bearer|basic|header:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}))?)?$",
        wanted="NAME, NAME=bearer, NAME=basic or NAME=header:X-Key, with NAME in capitals",
        required=False,
        default="",
        allow_blank=True,
        help_text="The secret that calls send. Left out, nothing is sent.",
    )
    token = serializers.CharField(
        min_length=MIN_CHARACTERS,
        max_length=MAX_BYTES,
        required=False,
        default="",
        trim_whitespace=False,
        write_only=True,
        help_text="Sent to this server once, to read its list, and kept nowhere.",
    )


class PackageSourceSerializer(ImportSourceSerializer):
    package = PatternField(
        r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$",
        wanted="the name of a package",
        help_text="On the hub's index.",
    )
    version = PatternField(
        r"^([A-Za-z0-9][A-Za-z0-9.!+_-]{0,60})?$",
        wanted="one version",
        required=False,
        default="",
        allow_blank=True,
        help_text="The newest if empty.",
    )
    constraints = _lines(
        r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]*\])?[ \t]*([<>=!~]=?|===)[^\s;@]+$",
        "a package and its versions",
    )
    script = serializers.CharField(max_length=200, required=False, default="", allow_blank=True)
    arguments = _lines(r"^[^\u0000-\u001f\u007f]+$", "an argument")
    environment = _lines(r"^[A-Za-z_][A-Za-z0-9_]{0,127}=[^\u0000-\u001f\u007f]*$", "NAME=VALUE")
    secrets = _lines(r"^[A-Za-z_][A-Za-z0-9_]{0,63}$", "the name of a variable")
    hosts = _lines(r"^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$", "the name of a host")


class ImportChoiceSerializer(StrictSerializer):
    names = serializers.ListField(child=serializers.CharField(max_length=MAX_NAME), min_length=1, max_length=MAX_CHOSEN)


class EditedImportDraftSerializer(StrictSerializer):
    document = ObjectField(help_text="The manifest. Its id and where the tool comes from stay.")
    reason = serializers.CharField(
        max_length=services.MAX_REASON_CHARS,
        required=False,
        default="",
        allow_blank=True,
        help_text="Why the effect is another one than the source proposes.",
    )


class ImportSubmissionSerializer(StrictSerializer):
    tools = serializers.ListField(
        child=serializers.CharField(max_length=128),
        required=False,
        default=None,
        allow_null=True,
        min_length=1,
        max_length=MAX_CHOSEN,
        help_text="Ids of drafts; all of them if left out.",
    )


class SubmittedImportSerializer(serializers.Serializer[Any]):
    versions = SubmittedSerializer(many=True)


ONE = build_envelope_serializer("ImportEnvelope", WholeImportSerializer())
MANY = build_page_serializer("ImportPage", "imports", ImportSummarySerializer)
OFFERS = build_page_serializer("ImportOfferPage", "offers", ImportOfferSerializer)
DRAFT = build_envelope_serializer("ImportDraftEnvelope", ImportDraftSerializer())
SUBMITTED = build_envelope_serializer("SubmittedImportEnvelope", SubmittedImportSerializer())


def import_json(row: Import, *, offered: int, drafted: int) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "kind": row.kind,
        "group": row.group,
        "name": row.name,
        "state": row.state,
        "digest": row.digest or None,
        "offered": offered,
        "drafted": drafted,
        "failure": row.failure or None,
        "started_by": row.started_by,
        "started_at": row.started_at.isoformat(),
        "read_at": row.read_at.isoformat() if row.read_at else None,
    }


def draft_json(draft: ImportDraft) -> dict[str, Any]:
    said: dict[str, Any] = {name: value for name, value in draft.items() if name not in ("id", "made")}
    return said | {"tool": draft["id"], "is_same": not is_otherwise(draft)}


def whole_import_json(row: Import) -> dict[str, Any]:
    return import_json(row, offered=len(row.offered), drafted=len(row.drafts)) | {
        "drafts": [draft_json(each) for each in row.drafts],
        "refusals": row.undrafted,
        "unproposed": row.unproposed,
        "gone": services.find_gone(row) if row.state == ImportState.READ else [],
    }


def _find(request: Request, import_id: UUID) -> Import:
    return Import.objects.defer(*LONG_FIELDS).get(pk=import_id, tenant_id=get_caller(request).tenant_id)


def _answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status)


def _made(row: Import) -> Response:
    return _answer(whole_import_json(row), status=201)


class ImportListView(Endpoint):
    """The sources that tools are brought from, the newest first."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "imp"

    @extend_schema(operation_id="list_imports", responses={200: MANY})
    def get(self, request: Request) -> Response:
        page = self.page_of(Import.objects.for_lists().filter(tenant_id=get_caller(request).tenant_id))
        rows = [import_json(row, offered=row.offered_count, drafted=row.draft_count) for row in page.rows]
        return _answer({"imports": rows, "next": page.next or None})


class DocumentImportView(Endpoint):
    """Bring operations of an OpenAPI document. One whose group is there already is read anew."""

    required_scope = SCOPE
    parser_classes = [DocumentParser]

    @extend_schema(operation_id="import_document", request=DocumentSourceSerializer, responses={201: ONE})
    def post(self, request: Request) -> Response:
        said = read_body(request, DocumentSourceSerializer)
        try:
            data = base64.b64decode(said.pop("document").encode("ascii"), validate=True)
        except (ValueError, binascii.Error) as error:
            raise SchemaInvalid.at("/document", "This is no base64.") from error
        return _made(services.import_document(data=data, by=get_caller(request), **said))


class RemoteImportView(Endpoint):
    """Bring tools of an MCP server elsewhere, which is asked for its list."""

    required_scope = SCOPE

    @extend_schema(operation_id="import_remote", request=RemoteSourceSerializer, responses={201: ONE})
    def post(self, request: Request) -> Response:
        said = read_body(request, RemoteSourceSerializer)
        secret, token = said.pop("secret"), said.pop("token")
        row = services.import_remote(
            secrets=[secret] if secret else [],
            values={secret.partition("=")[0]: token},
            by=get_caller(request),
            **said,
        )
        return _made(row)


class PackageImportView(Endpoint):
    """Bring tools of an MCP server that a package brings. A worker starts it in a box, to see what it lists: look again until
    `state` is `read` or `failed`.
    """

    required_scope = SCOPE

    @extend_schema(operation_id="import_package", request=PackageSourceSerializer, responses={201: ONE})
    def post(self, request: Request) -> Response:
        said = read_body(request, PackageSourceSerializer)
        return _made(services.import_package(by=get_caller(request), **said))


class ImportView(Endpoint):
    """One source with its drafts; forgetting it, while versions that were made of it stay."""

    required_scope = SCOPE

    @extend_schema(operation_id="read_import", responses={200: ONE})
    def get(self, request: Request, import_id: UUID) -> Response:
        return _answer(whole_import_json(_find(request, import_id)))

    @extend_schema(operation_id="remove_import", responses={204: None})
    def delete(self, request: Request, import_id: UUID) -> Response:
        services.remove_import(import_id=import_id, by=get_caller(request))
        return Response(status=204)


class ImportOfferListView(Endpoint):
    """What a source has to choose from, in its own order."""

    required_scope = SCOPE
    query = ImportOfferQuerySerializer

    @extend_schema(operation_id="list_import_offers", responses={200: OFFERS})
    def get(self, request: Request, import_id: UUID) -> Response:
        row = _find(request, import_id)
        found = filter_offers(row.offered, {name: self.asked.get(name, "") for name in ("q", "tag", "effect")})
        start, limit = self._find_start(found), self.asked["limit"]
        drafted = {each["name"] for each in row.drafts}
        shown = [each | {"drafted": each["name"] in drafted} for each in found[start : start + limit]]
        following = shown[-1]["name"] if start + limit < len(found) else None
        return _answer({"offers": shown, "next": following})

    def _find_start(self, found: list[dict[str, Any]]) -> int:
        after = self.asked.get("after", "")
        if not after:
            return 0
        for place, offer in enumerate(found):
            if offer["name"] == after:
                return place + 1
        raise SchemaInvalid.at("/after", "The page cursor `after` is not one that this list gave out.")


class ImportChoiceView(Endpoint):
    """Make drafts of operations or tools, beside those that there are."""

    required_scope = SCOPE

    @extend_schema(operation_id="choose_import_offers", request=ImportChoiceSerializer, responses={200: ONE})
    def post(self, request: Request, import_id: UUID) -> Response:
        said = read_body(request, ImportChoiceSerializer)
        return _answer(whole_import_json(services.choose_tools(import_id=import_id, by=get_caller(request), **said)))


class ImportDraftView(Endpoint):
    """One draft: reading it, changing it, leaving it out."""

    required_scope = SCOPE
    conditional = True

    @extend_schema(operation_id="read_import_draft", responses={200: DRAFT})
    def get(self, request: Request, import_id: UUID, tool: str) -> Response:
        return _answer(draft_json(services.find_draft(_find(request, import_id), tool)))

    @extend_schema(operation_id="edit_import_draft", request=EditedImportDraftSerializer, responses={200: DRAFT})
    def put(self, request: Request, import_id: UUID, tool: str) -> Response:
        said = read_body(request, EditedImportDraftSerializer)
        row = services.edit_draft(import_id=import_id, tool=tool, by=get_caller(request), **said)
        return _answer(draft_json(services.find_draft(row, tool)))

    @extend_schema(operation_id="remove_import_draft", responses={204: None})
    def delete(self, request: Request, import_id: UUID, tool: str) -> Response:
        services.remove_draft(import_id=import_id, tool=tool, by=get_caller(request))
        return Response(status=204)


class ImportSubmissionView(Endpoint):
    """The drafts become versions that wait for their review: all that are named, or none."""

    required_scope = SCOPE

    @extend_schema(operation_id="submit_import", request=ImportSubmissionSerializer, responses={201: SUBMITTED})
    def post(self, request: Request, import_id: UUID) -> Response:
        said = read_body(request, ImportSubmissionSerializer)
        made = submissions.submit_import(import_id=import_id, by=get_caller(request), **said)
        return _answer({"versions": [submitted_json(each) for each in made]}, status=201)
