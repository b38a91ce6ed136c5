"""Held files: what a request to a model names by its id, read for whoever may read it and held against what the request says of it.

An artifact is one of the agent's own calls; a file is one of the tenant's, for keys that may read those. A text becomes a part of the
conversation, so that it is looked through as all texts are, and an artifact's stands between the marks of what a tool returned; of the
rest the provider is sent the bytes. Nothing is fetched.

A picture may also stand in the request. It is taken out before there is a call, and its digest stands in its place: nothing that
keeps or logs a call ever has its bytes.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.db import transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.base import ListDigest
from evidence.leaves.files import FileContent, ReadArtifact
from invocations.artifacts.description import IMAGES, TEXTUAL, detect_media_type
from invocations.artifacts.problems import NoSuchArtifact
from invocations.artifacts.services import decrypt_content, find_artifacts
from invocations.files.problems import NoSuchFile
from invocations.files.services import find_file, open_file
from kernel.canonical import compute_digest
from kernel.ids import decode
from kernel.problems import Problem, SchemaInvalid, TooLarge
from llm.messages import AssistantMessage, AttachmentRef, ImageRef, Text
from llm.pictures import NO_DATA_URL, NO_PICTURE, PictureShelf, measure_picture, read_data_url
from llm.problems import ParameterUnsupported
from llm.served.parameters import escape
from llm.untrusted_texts import delimit_text
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from invocations.artifacts.models import Artifact
    from invocations.models import StoredFile
    from kernel.principal import Principal
    from llm.messages import AudioRef, Segment
    from llm.pictures import Picture
    from llm.requests import ChatRequest

    Reference = ImageRef | AudioRef | AttachmentRef

ARTIFACT, FILE = "art_", "fil_"
READ_ARTIFACTS, READ_FILES = "invocations:read", "files:manage"
MAX_FILES = 20
MAX_BYTES = 10 * 1024 * 1024  # of all files of a request; a provider is sent a third more
MAX_TEXT_BYTES = 1024 * 1024  # of a text, which is looked through
VIA = "model"
ONLY_DATA = "A picture that stands in the request has `data` alone; its bytes say the rest."
MADE_BY_A_TOOL = "untrusted_tool_artifact"
NOT_HELD = "The request names something that the hub does not hold for it."
# What each kind of segment may be, by its bytes; an attachment may also be a text.
MEDIA_TYPES = {
    "image_ref": IMAGES,
    "audio_ref": frozenset({"audio/wav", "audio/mpeg"}),
    "attachment_ref": frozenset({"application/pdf"}),
}


@dataclass(frozen=True, slots=True)
class HeldFile:
    """One of them. ``data_classes``: what the manifest of the tool says that has left it."""

    id: str
    fingerprint: str
    content: bytes = field(repr=False)
    data_classes: frozenset[str] = frozenset()
    picture: Picture | None = None  # that stood in the request: the hub does not hold it


def take_pictures(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Picture], Problem | None]:
    """(Arguments in which digests stand for pictures, the pictures by these, why one of them is none)."""
    shelf, problem = PictureShelf(), None
    messages = arguments.get("messages")
    taken = []
    for place, message in enumerate(messages if isinstance(messages, list) else ()):
        segments = message.get("segments") if isinstance(message, dict) else None
        if not isinstance(segments, list) or not any(map(_has_data, segments)):
            taken.append(message)
            continue
        left = []
        for at, segment in enumerate(segments):
            try:
                left.append(_take_picture(segment, shelf, f"/messages/{place}/segments/{at}"))
            except Problem as error:
                problem = problem or error
                left.append({"type": "image_ref"})
        taken.append(message | {"segments": left})
    return (arguments | {"messages": taken} if isinstance(messages, list) else arguments), shelf.pictures, problem


def _has_data(segment: Any) -> bool:
    return isinstance(segment, dict) and segment.get("type") == "image_ref" and "data" in segment


def _take_picture(segment: Any, shelf: PictureShelf, at: str) -> Any:
    if not _has_data(segment):
        return segment
    if more := sorted(set(segment) - {"type", "data"}):
        raise SchemaInvalid.at(f"{at}/{escape(more[0])}", ONLY_DATA)
    if not isinstance(segment["data"], str):
        raise SchemaInvalid.at(f"{at}/data", NO_DATA_URL)
    return shelf.add(read_data_url(segment["data"], f"{at}/data"))


def load_held_files(
    arguments: Mapping[str, Any], pictures: Mapping[str, Picture], *, by: Principal
) -> dict[str, HeldFile]:
    """What the messages name, by id. ``pictures``: those of the request itself.

    What is no id of something that this agent may read raises; what is malformed is for others.
    """
    ids = list(dict.fromkeys(_iter_ids(arguments.get("messages"))))
    if len(ids) + len(pictures) > MAX_FILES:
        raise SchemaInvalid.at("/messages", f"A request has at most {MAX_FILES} pictures, sounds and files.")
    found, room = {}, MAX_BYTES
    for id, picture in pictures.items():
        _check_room(len(picture.content), room)
        fingerprint = evidence.compute_fingerprint(picture.content, tenant_id=by.tenant_id)
        found[id] = HeldFile(id, fingerprint, picture.content, picture=picture)
        room -= len(picture.content)
    for id in ids:
        held = _load_artifact(id, room, by) if id.startswith(ARTIFACT) else _load_file(id, room, by)
        found[id] = held
        room -= len(held.content)
    return found


def _iter_ids(messages: Any) -> Iterator[str]:
    for message in messages if isinstance(messages, list) else ():
        segments = message.get("segments") if isinstance(message, dict) else None
        for segment in segments if isinstance(segments, list) else ():
            if isinstance(segment, dict) and segment.get("type") in MEDIA_TYPES:
                id = segment.get("id")
                if isinstance(id, str) and id.startswith((ARTIFACT, FILE)):
                    yield id


def _check_room(size: int, room: int) -> None:
    if size > room:
        raise TooLarge(f"The pictures, sounds and files of a request have at most {MAX_BYTES:,} bytes together.")


def find_held_artifact(id: str, *, by: Principal) -> Artifact:
    """The artifact of one of the agent's own calls, by its id."""
    try:
        row = find_artifacts(by).filter(pk=decode("art", id)).select_related("invocation").first()
    except ValueError:
        row = None
    if row is None:
        raise NoSuchArtifact(f"There is no artifact {id[:60]} of a call of this agent.")
    return row


def find_held_file(id: str, *, by: Principal, has_content: bool = False) -> StoredFile:
    """The tenant's file, by its id; ``has_content``: to be opened."""
    try:
        row = find_file(decode("fil", id), tenant_id=by.tenant_id, has_content=has_content)
    except ValueError:
        row = None
    if row is None:
        raise NoSuchFile(
            f"There is no file {id[:60]} here.", remedy="Look at the list of files, and use one of its ids."
        )
    return row


def _load_artifact(id: str, room: int, by: Principal) -> HeldFile:
    by.check(READ_ARTIFACTS)
    row = find_held_artifact(id, by=by)
    _check_room(row.content.size, room)
    version = row.invocation.version_id
    classes = compiled_version(version).manifest.data_classes if version is not None else ()
    return HeldFile(id, row.content.fingerprint, decrypt_content(row.content), frozenset(classes))


def _load_file(id: str, room: int, by: Principal) -> HeldFile:
    by.check(READ_FILES)
    _check_room(find_held_file(id, by=by).size, room)
    row = find_held_file(id, by=by, has_content=True)
    return HeldFile(id, row.fingerprint, open_file(row))


def fit_held_files(request: ChatRequest, held: Mapping[str, HeldFile]) -> ChatRequest:
    """The request with texts in the place of files that are texts. Raises for what is not as the request says."""
    messages = []
    for place, message in enumerate(request.messages):
        if isinstance(message, AssistantMessage):
            messages.append(message)
            continue
        segments = tuple(
            each if isinstance(each, Text) else _fit_segment(each, held, f"/messages/{place}/segments/{at}")
            for at, each in enumerate(message.segments)
        )
        messages.append(message if segments == message.segments else replace(message, segments=segments))  # type: ignore[arg-type]
    return replace(request, messages=tuple(messages))


def _fit_segment(segment: Reference, all_held: Mapping[str, HeldFile], at: str) -> Segment:
    """Its bytes decide what it is; of what can be told by no bytes, such as one text of another, the request may say more."""
    held = all_held.get(segment.id)
    if held is None:
        raise ParameterUnsupported(NOT_HELD, details={"findings": [{"pointer": f"{at}/id", "message": NOT_HELD}]})
    size, found = len(held.content), detect_media_type(held.content, "")
    if segment.size_bytes != size:
        raise SchemaInvalid.at(f"{at}/size_bytes", f"It has {size:,} bytes.")
    if detect_media_type(held.content, segment.media_type) != segment.media_type:
        raise SchemaInvalid.at(f"{at}/media_type", f"By its bytes it is {found}.")
    if segment.media_type in MEDIA_TYPES[segment.type]:
        if isinstance(segment, ImageRef):
            _check_measures(segment, held.content, at)
        return segment
    if isinstance(segment, AttachmentRef) and TEXTUAL.fullmatch(segment.media_type):
        return _fit_text(held, at)
    message = f"No model is sent {segment.media_type} as a segment of the type {segment.type}."
    raise ParameterUnsupported(message, details={"findings": [{"pointer": f"{at}/media_type", "message": message}]})


def _check_measures(segment: ImageRef, content: bytes, at: str) -> None:
    """What a picture is reserved at is counted by its width and height."""
    measures = measure_picture(content)
    if measures is None:
        raise SchemaInvalid.at(f"{at}/id", NO_PICTURE)
    for side in ("width", "height"):
        if getattr(segment, side) != getattr(measures, side):
            raise SchemaInvalid.at(f"{at}/{side}", f"By its bytes it is {measures.width} by {measures.height} pixels.")


def _fit_text(held: HeldFile, at: str) -> Text:
    if not 0 < len(held.content) <= MAX_TEXT_BYTES:
        raise SchemaInvalid.at(f"{at}/size_bytes", f"A text has 1 to {MAX_TEXT_BYTES:,} bytes.")
    text = held.content.decode()
    if held.id.startswith(ARTIFACT):  # a tool has made it, whoever's message names it
        text = delimit_text(text, MADE_BY_A_TOOL)
    return Text(f"<file id={held.id}>\n{text}\n</file id={held.id}>")


def digest_held_files(held: Iterable[HeldFile]) -> ListDigest | None:
    """What a fact says of those that are sent: how many, and a digest of ids and keyed hashes."""
    named = sorted([each.id, each.fingerprint] for each in held if each.picture is None)
    return ListDigest(count=len(named), hash=compute_digest(named)) if named else None


def describe_pictures(held: Iterable[HeldFile]) -> list[dict[str, Any]] | None:
    """What a fact says of those that stood in the request."""
    return [
        {"content": each.fingerprint, "media_type": each.picture.measures.media_type, "bytes": len(each.content)}
        for each in held
        if each.picture is not None
    ] or None


def record_sent_files(held: Iterable[HeldFile], *, by: Principal) -> None:
    """That each was read, before anybody is sent it. Of a picture of the request the Begin fact has said all."""
    named = [each for each in held if each.picture is None]
    if not named:
        return
    with transaction.atomic():
        for each in named:
            if each.id.startswith(ARTIFACT):
                data: FileContent = ReadArtifact(content=each.fingerprint, via=VIA)
                evidence.record(kind=Kind.ARTIFACT_READ, subject=each.id, actor=by, data=data)
            else:
                content = FileContent(content=each.fingerprint)
                evidence.record(kind=Kind.FILE_READ, subject=each.id, actor=by, data=content)


# For the adapters of providers, which ask for bytes by their segment. A provider is connected once for all calls of a tenant: it is
# given what belongs to the call that runs here.
_offered: ContextVar[Mapping[str, HeldFile]] = ContextVar("offered_files")


@contextmanager
def offer_files(held: Mapping[str, HeldFile]) -> Iterator[None]:
    """While the block runs, its adapter can read these and no other."""
    token = _offered.set(held)
    try:
        yield
    finally:
        _offered.reset(token)


async def read_offered_file(segment: Reference) -> bytes:
    """The resolver of all providers (llm.providers.conversations)."""
    held = _offered.get({}).get(segment.id)
    if held is None:
        raise ParameterUnsupported(NOT_HELD)
    return held.content
