"""OpenAPI documents: the operations that one describes, and what its references name.

A document is a file of somebody else's, up to 32 MiB of JSON or YAML. YAML, whose values cost many times what JSON's do, is counted
as well. It is parsed once and looked into where an operation was chosen:
nothing is expanded, nothing is fetched, and a reference that leaves the file is refused.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from unitools.mcp_listings import compute_digest_and_size
from unitools.strict_json import JsonReader, JsonRefused, build_unique_object, read_fraction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
MAX_DOCUMENT_DEPTH = 100
MAX_YAML_EVENTS = 500_000  # each takes some hundred bytes of memory until all is read
MAX_REFERENCES = 50  # that follow each other to one value
MAX_PATHS = 25_000
MAX_UNREAD = 5
MAX_REFERENCE_CHARS = 4_000
MAX_MEASURED_BYTES = 4 * MAX_DOCUMENT_BYTES  # of what references name: one may name a part of what another names
METHODS = ("get", "head", "post", "put", "patch", "delete")
_REVISION = re.compile(r"(3\.0|3\.1)(\.[0-9]+)?(-[a-z0-9.]+)?")
_PLAIN_WORDS: list[tuple[str, re.Pattern[str], str]] = [  # YAML's JSON schema: dates, yes and 12:30 are texts
    ("null", re.compile(r"(?:null|Null|NULL|~|)\Z"), "nN~"),
    ("bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), "tTfF"),
    ("int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), "-0123456789"),
    ("float", re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?\Z"), "-0123456789"),
]
_READER = JsonReader()
_UNSEEN = "A text holds a character that no database keeps: NUL, or half of one."
_TAKE_OUT = "Take the character out."


class DocumentUnfit(Exception):
    """A document, or a part of it, cannot be brought. ``pointer``: where; ``remedy``: what to do."""

    def __init__(self, pointer: str, message: str, remedy: str) -> None:
        self.pointer, self.message, self.remedy = pointer, message, remedy
        super().__init__(f"{message} (at {pointer or 'the document'}) {remedy}")


@dataclass(frozen=True, slots=True)
class DocumentDiagnostic:
    """Something of the document that a draft does not have, or has otherwise. ``pointer``: into the document."""

    pointer: str
    message: str


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A part of a document that is not to be had: what its :class:`DocumentUnfit` says, without the frames that an exception holds."""

    pointer: str
    message: str
    remedy: str

    def to_error(self) -> DocumentUnfit:
        return DocumentUnfit(self.pointer, self.message, self.remedy)


@dataclass(slots=True)
class UnreadParts:
    """Paths and operations that are not to be had: the first by their names, and how many there are."""

    first: dict[str, UnreadPart] = field(default_factory=dict)
    count: int = 0

    def note(self, name: str, part: UnreadPart) -> None:
        self.count += 1
        if len(self.first) < MAX_UNREAD:
            self.first[name] = part

    def list_named(self) -> list[tuple[str, UnreadPart]]:
        """The first, and where there are more, how many in all."""
        if self.count == len(self.first):
            return [*self.first.items()]
        others = UnreadPart(
            "/paths", f"Only the first {MAX_UNREAD} are named here.", "Correct the document for all of them."
        )
        return [*self.first.items(), (f"{self.count:,} paths and operations in all", others)]


@dataclass(frozen=True, slots=True)
class OperationEntry:
    """One operation as the document lists it. ``id``: its operationId; without one ``GET /path``."""

    id: str
    method: str
    path: str
    pointer: str
    said: dict[str, Any]
    shared: dict[str, Any] = field(default_factory=dict)  # of the path: parameters and servers for all its methods

    @property
    def place(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def tags(self) -> list[str]:
        said = self.said.get("tags")
        return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []

    @property
    def summary(self) -> str:
        return next(
            (said for name in ("summary", "description") if isinstance(said := self.said.get(name), str) and said), ""
        )


@dataclass(slots=True)
class _PathItem:
    """What a path has by its methods: operations with their pointers, and those that are not to be had."""

    methods: dict[str, tuple[dict[str, Any], str]] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    unread: dict[str, UnreadPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """``revision``: 2.0, 3.0 or 3.1; ``said_revision`` as it is written; ``digest``: of the file's bytes."""

    root: dict[str, Any]
    revision: str
    said_revision: str
    digest: str
    operations: dict[str, OperationEntry]
    unread: UnreadParts = field(default_factory=UnreadParts)  # where one lies in another file, most do
    # Of a reference that names nothing, the UnreadPart that says so.
    _found: dict[str, Any] = field(default_factory=dict, repr=False)
    _measured: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict, repr=False)
    _targets: dict[int, tuple[str, tuple[str, ...]]] = field(default_factory=dict, repr=False)
    _room: list[int] = field(default_factory=lambda: [MAX_MEASURED_BYTES], repr=False)

    @property
    def title(self) -> str:
        return self._about("title")[:200]

    @property
    def version(self) -> str:
        return self._about("version")[:100]

    def _about(self, name: str) -> str:
        info = self.root.get("info")
        return str(info.get(name) or "") if isinstance(info, dict) else ""

    def resolve(self, value: Any, pointer: str) -> tuple[Any, str]:
        """What stands there, references followed, and where it stands in the end."""
        for _ in range(MAX_REFERENCES):
            if not (isinstance(value, dict) and isinstance(reference := value.get("$ref"), str)):
                return value, pointer
            value, pointer = self.find(reference, pointer), reference.removeprefix("#")
        raise DocumentUnfit(pointer, "References lead to references without an end.", "Correct the document.")

    def find(self, reference: str, pointer: str) -> Any:
        """What a reference names; it is looked for once, whether it names something or nothing. ``pointer``: where it stands."""
        if reference not in self._found:
            self._found[reference] = self._find(reference)
        if isinstance(found := self._found[reference], UnreadPart):
            raise DocumentUnfit(pointer, found.message, found.remedy)
        return found

    def _find(self, reference: str) -> Any:
        if not reference.startswith("#"):
            return UnreadPart(
                "",
                f"The reference {reference[:200]!a} leads to another file or address, and nothing is fetched.",
                "Bundle the document into one file first, for example with `npx @redocly/cli bundle`.",
            )
        if len(reference) > MAX_REFERENCE_CHARS:
            return UnreadPart(
                "", f"A reference has more than {MAX_REFERENCE_CHARS:,} characters.", "Correct the document."
            )
        found: Any = self.root
        text = unquote(reference[1:])
        for token in text.split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and len(key) < 8 and int(key) < len(found):
                found = found[int(key)]
            else:
                found = None
            if found is None:
                break
        if found is None or (text and not text.startswith("/")):
            return UnreadPart("", f"The reference {reference[:200]!a} names nothing.", "Correct the document.")
        return found

    def measure(self, reference: str, pointer: str) -> tuple[str, tuple[str, ...]]:
        """The digest of what a reference names, without what that refers to, and the references in it, which are one object for one
        place; an empty digest for nothing. ``pointer``: of who asks."""
        if reference not in self._measured:
            try:
                target = self.find(reference, pointer)
            except DocumentUnfit:
                self._measured[reference] = "", ()
            else:
                self._measured[reference] = self._measure_target(target, pointer)
        return self._measured[reference]

    def is_same(self, one: Any, other: Any, pointer: str) -> bool:
        """Whether two values that stand in the document say the same. ``pointer``: of who asks."""
        return one is other or self._measure_target(one, pointer)[0] == self._measure_target(other, pointer)[0]

    def _measure_target(self, target: Any, pointer: str) -> tuple[str, tuple[str, ...]]:
        """Once, by however many references it is named: `#/a` and `#/%61` are one place."""
        if id(target) not in self._targets:
            if self._room[0] < 0:
                raise DocumentUnfit(
                    pointer,
                    "It leads to parts of the document that lie within each other, again and again: more than "
                    f"{MAX_MEASURED_BYTES >> 20} MiB in all.",
                    "Refer to definitions that stand side by side, or leave the operation out.",
                )
            digest, size = compute_digest_and_size(target)
            self._room[0] -= size
            self._targets[id(target)] = digest, tuple(find_references(target))
        return self._targets[id(target)]

    def select(self, names: Sequence[str], tags: Sequence[str] = ()) -> list[OperationEntry]:
        """The operations of these ids (or ``GET /path``), and all that have one of these tags."""
        places = {each.place: each for each in self.operations.values()}
        chosen: dict[str, OperationEntry] = {}
        for name in names:
            entry = self.operations.get(name) or places.get(name)
            if entry is None:
                raise DocumentUnfit(
                    "/paths",
                    f"The document has no operation {name[:200]!r}.",
                    "See them with --list, and name one as it stands there.",
                )
            chosen[entry.id] = entry
        for tag in tags:
            found = {each.id: each for each in self.operations.values() if tag in each.tags}
            if not found:
                raise DocumentUnfit("/paths", f"No operation has the tag {tag[:200]!r}.", "See the tags with --list.")
            chosen |= found
        return list(chosen.values())


def find_references(value: Any) -> frozenset[str]:
    """What stands as ``$ref`` anywhere in it."""
    found: set[str] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
            if isinstance(reference := each.get("$ref"), str):
                found.add(reference)
    return frozenset(found)


def escape_token(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def read_document(data: bytes) -> OpenApiDocument:
    """From the bytes of a file. Raises :class:`DocumentUnfit`."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise DocumentUnfit(
            "",
            f"The file has {len(data):,} bytes; a document has at most {MAX_DOCUMENT_BYTES:,}.",
            "Take out what you do not need.",
        )
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    root = _read_root(data)
    said = root.get("openapi", root.get("swagger"))
    said_revision = str(said) if isinstance(said, str | float) and not isinstance(said, bool) else ""
    if "openapi" not in root and said_revision == "2.0":
        revision = "2.0"
    elif "openapi" in root and (found := _REVISION.fullmatch(said_revision)):
        revision = found[1]
    else:
        raise DocumentUnfit(
            "",
            f"This is no OpenAPI document of 2.0, 3.0 or 3.1: it says {said_revision[:40]!r}.",
            "Convert it to 3.1, or choose another file.",
        )
    document = OpenApiDocument(root, revision, said_revision, digest, {})
    _list_operations(document)
    if document.unread.first and not document.operations:
        raise next(iter(document.unread.first.values())).to_error()
    return document


def _read_root(data: bytes) -> dict[str, Any]:
    is_json = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    try:
        root = (
            _READER.read(data.removeprefix(b"\xef\xbb\xbf"), max_depth=MAX_DOCUMENT_DEPTH)
            if is_json
            else _read_yaml(data)
        )
    except JsonRefused as error:
        remedy = "Keep one of the two." if error.code == "duplicate_key" else "Correct the file."
        what = f"{error} {error.subject[:80]!a}" if error.subject else str(error)
        raise DocumentUnfit("", f"The file cannot be read: {what}", remedy) from error
    if is_json and b"\\u0000" in data:
        _refuse_nul(root)
    if not isinstance(root, dict):
        raise DocumentUnfit("", "The file holds no object.", "Choose a file that begins with openapi or swagger.")
    return root


def _is_kept(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def _refuse_nul(root: Any) -> None:
    """No database keeps it, and nobody sees it."""
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        at, value = waiting.pop()
        if isinstance(value, str) and not _is_kept(value):
            raise DocumentUnfit(at, _UNSEEN, _TAKE_OUT)
        if isinstance(value, dict):
            for name, inner in value.items():
                place = f"{at}/{escape_token(name)}"
                if not _is_kept(name):
                    raise DocumentUnfit(ascii(place)[1:-1], _UNSEEN, _TAKE_OUT)
                waiting.append((place, inner))
        elif isinstance(value, list):
            waiting += [(f"{at}/{index}", inner) for index, inner in enumerate(value)]


def _read_yaml(data: bytes) -> Any:
    """Events first: they show aliases, tags, depth and how much there is before anything is built."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError as error:
        raise DocumentUnfit(
            "", "The file is YAML, and PyYAML is not installed here.", "Install pyyaml, or convert the file to JSON."
        ) from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise DocumentUnfit("", "The file is not UTF-8.", "Save it as UTF-8.") from error
    loader = _yaml_loader(yaml)
    depth = 0
    try:
        for count, event in enumerate(yaml.parse(text, Loader=loader)):
            if count >= MAX_YAML_EVENTS:
                _refuse_yaml(
                    event,
                    f"The file has more than {MAX_YAML_EVENTS:,} names, values, lists and objects before this line ends.",
                    "Convert the file to JSON, which may hold more, or take out what you do not need.",
                )
            if isinstance(event, yaml.AliasEvent):
                _refuse_yaml(
                    event,
                    "The file has an alias of YAML, by which a small file can become a large one.",
                    "Write the value out, or use $ref.",
                )
            if isinstance(event, yaml.ScalarEvent) and not _is_kept(event.value):
                _refuse_yaml(event, _UNSEEN, _TAKE_OUT)
            if getattr(event, "tag", None):
                _refuse_yaml(event, "The file has a tag of YAML.", "Take the tag away.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DOCUMENT_DEPTH:
                _refuse_yaml(
                    event,
                    f"The file is nested more than {MAX_DOCUMENT_DEPTH} levels deep.",
                    "Make it flatter, with $ref.",
                )
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 1}" if mark else ""
        why = getattr(error, "problem", None) or "it is no YAML"
        raise DocumentUnfit("", f"The file cannot be read{place}: {why}.", "Correct the file.") from error
    except (ValueError, OverflowError) as error:
        if isinstance(error, JsonRefused):
            raise
        raise DocumentUnfit("", "The file holds a number that no program reads.", "Write it as a text.") from error


def _refuse_yaml(event: Any, message: str, remedy: str) -> NoReturn:
    raise DocumentUnfit("", f"Line {event.start_mark.line + 1}: {message}", remedy)


def _yaml_loader(yaml: Any) -> Any:
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """PyYAML's safe loader with fewer words that are not texts; what stands before a colon is a text always."""

        yaml_implicit_resolvers: dict[str | None, Any] = {}

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            del deep
            pairs = []
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise DocumentUnfit(
                        "", f"Line {key.start_mark.line + 1}: a name is no text.", "Write a text there."
                    )
                pairs.append((str(key.value), self.construct_object(value, deep=True)))
            return build_unique_object(pairs)

    Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: read_fraction(node.value))
    Loader.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node))
    for name, pattern, letters in _PLAIN_WORDS:
        for letter in [*letters, *(["", None] if name == "null" else [])]:
            Loader.yaml_implicit_resolvers.setdefault(letter, []).append((f"tag:yaml.org,2002:{name}", pattern))
    return Loader


def _list_operations(document: OpenApiDocument) -> None:
    paths, _ = document.resolve(document.root.get("paths", {}), "/paths")
    if not isinstance(paths, dict):
        raise DocumentUnfit("/paths", "paths is no object.", "Correct the document.")
    if len(paths) > MAX_PATHS:
        raise DocumentUnfit(
            "/paths",
            f"The document has {len(paths):,} paths; at most {MAX_PATHS:,} are read.",
            "Take out those whose operations you do not need, or make several documents of it.",
        )
    found = list(_iter_operations(document, paths))
    ids: dict[str, int] = {}
    places = {entry.place for entry in found}
    for entry in found:
        ids[entry.id] = ids.get(entry.id, 0) + 1
    for entry in found:
        # An operationId that stands twice names neither, and one that is another's method and path none: they are known by theirs.
        unique = (
            entry
            if ids[entry.id] == 1 and (entry.id == entry.place or entry.id not in places)
            else OperationEntry(entry.place, entry.method, entry.path, entry.pointer, entry.said, entry.shared)
        )
        document.operations[unique.id] = unique


def _iter_operations(document: OpenApiDocument, paths: dict[str, Any]) -> Iterator[OperationEntry]:
    read: dict[str, _PathItem] = {}  # by the reference: many paths may name one item
    for path, given in paths.items():
        if not (isinstance(path, str) and path.startswith("/") and isinstance(given, dict)):
            continue
        at = f"/paths/{escape_token(path)}"
        reference = given.get("$ref")
        item = read.get(reference) if isinstance(reference, str) else None
        if item is None:
            try:
                item = _read_path_item(document, *document.resolve(given, at))
            except DocumentUnfit as error:
                document.unread.note(path, _note_unread(error))  # the others can be brought
                continue
            if isinstance(reference, str):
                read[reference] = item
        for method, part in item.unread.items():
            document.unread.note(f"{method} {path}", part)
        for method, (said, there) in item.methods.items():
            name = said.get("operationId")
            id = name if isinstance(name, str) and name.strip() and len(name) <= 500 else f"{method} {path}"
            yield OperationEntry(id, method, path, there, said, item.shared)


def _read_path_item(document: OpenApiDocument, item: Any, at: str) -> _PathItem:
    found = _PathItem()
    if not isinstance(item, dict):
        return found
    found.shared = {name: item[name] for name in ("parameters", "servers") if name in item}
    for method in METHODS:
        try:
            said, there = document.resolve(item.get(method), f"{at}/{method}")
        except DocumentUnfit as error:
            found.unread[method.upper()] = _note_unread(error)
            continue
        if isinstance(said, dict):
            found.methods[method.upper()] = said, there
    return found


def _note_unread(error: DocumentUnfit) -> UnreadPart:
    return UnreadPart(error.pointer, error.message, error.remedy)
