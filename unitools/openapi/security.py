"""OpenAPI security: the credentials that the gate adds to a request, by the security schemes of its document.

What the document says once for all its operations, or for one. Of several ways the first that can be done is taken. A token that
stands among the parameters all the same is none of an agent's, and becomes a credential or is left out.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from unitools.openapi.argument_values import is_token
from unitools.openapi.documents import DocumentDiagnostic, DocumentUnfit
from unitools.openapi.requests import is_reserved_header
from unitools.openapi.texts import MAX_TEXT_CHARS, clean_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unitools.openapi.documents import OpenApiDocument
    from unitools.openapi.parts import OperationParameter

MAX_SECRET_CHARS = 64
MAX_SCHEMAS = 50  # that are looked at for what is said of one property
_TOKENS = re.compile(
    r"(?:x[-_])?(?:auth(?:entication|orization)?[-_]?)?(?:token|api[-_]?key|access[-_]?token|access[-_]?key|app[-_]?key|auth[-_]?key|"
    r"client[-_]?secret|secret|bearer|authorization|authentication|password)",
    re.IGNORECASE,
)
# Of headers also behind another word, as PRIVATE-TOKEN or X-Shop-Access-Token, but for those that turn pages or guard forms.
_HEADER_TOKENS = re.compile(
    r"(?!.*(?:page|next|prev|cursor|continuation|sync|csrf|xsrf|idempotency|client|request|device|upload)[-_]?(?:token|key|secret))"
    r"(?:[a-z0-9]+[-_])*(?:token|api[-_]?key|access[-_]?key|app[-_]?key|auth[-_]?key|secret|password|auth)",
    re.IGNORECASE,
)
_ALWAYS_TOKENS = frozenset(
    {"access_token", "accesstoken", "api_key", "apikey", "api-key", "auth_token", "client_secret"}
)
_SAYS_IT_PROVES = re.compile(
    r"authenticat|authoriz|bearer|api[ -]?key|access token|requires? (?:\w+ )?scope", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class CredentialChoice:
    """What a person says of a credential: ``name`` of the secret, and ``how`` it is sent: bearer, basic, header:NAME, query:NAME,
    cookie:NAME, a security scheme of the document, or empty: as the document says, else as a bearer token."""

    name: str
    how: str = ""


@dataclass(slots=True)
class Security:
    """``credentials`` and ``secrets`` as a manifest has them. ``host``: that is asked; ``prefix``: of the names of secrets."""

    credentials: list[dict[str, str]] = field(default_factory=list)
    secrets: list[dict[str, Any]] = field(default_factory=list)
    diagnostics: list[DocumentDiagnostic] = field(default_factory=list)
    host: str = ""
    prefix: str = ""

    @property
    def has_token(self) -> bool:
        """Whether a token or a user is said where HTTP has a place for it; keys beside it name a program."""
        return any(each["name"].lower() == "authorization" for each in self.credentials)

    def add(self, secret: str, way: _Way, *, host: str, is_required: bool) -> None:
        if self.covers(way.place, way.name):
            return
        self.credentials.append({"secret": secret, "in": way.place, "name": way.name, "scheme": way.scheme})
        if all(each["name"] != secret for each in self.secrets):
            text = (way.text or _describe(way, host))[:500]
            said: dict[str, Any] = {"name": secret, "description": text, "hosts": [host]}
            self.secrets.append(said if is_required else said | {"required": False})

    def take_parameter(self, parameter: OperationParameter, secret: str, *, host: str) -> None:
        """A parameter that says who is asking, as a credential."""
        text = clean_text(parameter.description, 400)[0]
        self.add(
            secret, _Way(parameter.place, parameter.name, "plain", text), host=host, is_required=parameter.is_required
        )

    def take_property(self, name: str) -> None:
        """A property of the body that says who is asking, as a credential that the gate adds there."""
        secret = f"{self.prefix}_{_snake(name)}"[:MAX_SECRET_CHARS]
        self.add(secret, _Way("body", name, "plain"), host=self.host, is_required=True)

    def covers(self, place: str, name: str) -> bool:
        small = name.lower() if place == "header" else name
        return any(
            each["in"] == place and (each["name"].lower() if place == "header" else each["name"]) == small
            for each in self.credentials
        )


class _Way(NamedTuple):
    """One credential: where it stands, under which name, how it is written, and what is said of it."""

    place: str
    name: str
    scheme: str
    text: str = ""


_TOKEN_OF_NO_SCHEME = _Way("header", "Authorization", "bearer")


def read_security(
    document: OpenApiDocument, said: Any, host: str, prefix: str, named: Sequence[CredentialChoice], pointer: str
) -> Security:
    """``prefix``: before the names of secrets, so that those of two services are two. Raises :class:`DocumentUnfit`."""
    found = Security(host=host, prefix=prefix)
    schemes = list_schemes(document)
    by_scheme = {each.how: each.name for each in named if each.how in schemes}
    plain = [each.name for each in named if not each.how]
    if by_hand := [each for each in named if each.how and each.how not in schemes]:
        for each in by_hand:
            found.add(each.name, _read_how(each), host=host, is_required=True)
        return found
    ways = [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []
    wanted = sorted([each for each in ways if each], key=lambda way: _rank_way(way, schemes, by_scheme))
    problems: list[str] = []
    for way in wanted:
        read = {name: found_way for name in way if (found_way := _read_scheme(schemes.get(name))) is not None}
        if len(read) < len(way):
            problems += [name for name in way if name not in read]
            continue
        for name, credential in read.items():
            own = plain[0] if len(way) == 1 and plain else f"{prefix}_{_snake(name)}"[:MAX_SECRET_CHARS]
            found.add(by_scheme.get(name, own), credential, host=host, is_required=len(wanted) == len(ways))
        if len(wanted) > 1:
            what = f"Of {len(wanted)} ways to say who is asking, {' with '.join(way)} is taken."
            found.diagnostics.append(DocumentDiagnostic(pointer, what))
        return found
    if wanted:
        raise DocumentUnfit(
            pointer,
            f"The gate cannot say who is asking by {', '.join(problems)[:100]}.",
            "Name how it is done with --secret (in the console: Credentials): NAME=bearer, basic or header:NAME.",
        )
    if plain and said != []:  # an empty list says that anybody may ask
        found.add(plain[0], _TOKEN_OF_NO_SCHEME, host=host, is_required=True)
    return found


def _rank_way(way: dict[str, Any], schemes: dict[str, dict[str, Any]], named: dict[str, str]) -> int:
    """What the person names first, a password last; else as the document has it."""
    if named:
        return 0 if named.keys() & way.keys() else 1
    return 2 if any(_is_basic(schemes.get(name, {})) for name in way) else 1


def _is_basic(said: dict[str, Any]) -> bool:
    return said.get("type") == "basic" or (said.get("type") == "http" and str(said.get("scheme")).lower() == "basic")


def find_schemes(document: OpenApiDocument) -> Any:
    """What stands where the document has its security schemes."""
    if document.revision == "2.0":
        return document.root.get("securityDefinitions")
    components = document.root.get("components")
    return components.get("securitySchemes") if isinstance(components, dict) else None


def list_schemes(document: OpenApiDocument) -> dict[str, dict[str, Any]]:
    """The security schemes of the document by their names."""
    said = find_schemes(document)
    found = {}
    for name, each in said.items() if isinstance(said, dict) else ():
        scheme, _ = document.resolve(each, f"/components/securitySchemes/{name}")
        if isinstance(scheme, dict):
            found[name] = scheme
    return found


def _read_scheme(said: dict[str, Any] | None) -> _Way | None:
    """None: the gate does not do it."""
    if said is None:
        return None
    text, _ = clean_text(said.get("description"), 400)
    kind, scheme = str(said.get("type", "")), str(said.get("scheme", "")).lower()
    if kind in ("oauth2", "openIdConnect"):
        return _Way("header", "Authorization", "bearer", text or "An access token of the service.")
    if _is_basic(said):
        return _Way("header", "Authorization", "basic", text and f"user:password. {text}")
    if kind == "http" and scheme == "bearer":
        return _Way("header", "Authorization", "bearer", text)
    if kind == "apiKey" and isinstance(said.get("name"), str) and said.get("in") in ("header", "query", "cookie"):
        place, name = str(said["in"]), str(said["name"])
        return (
            _Way(place, name, "plain", text)
            if is_token(name) and len(name) <= 100 and not _is_gates(place, name)
            else None
        )
    return None


def _is_gates(place: str, name: str) -> bool:
    return place == "header" and name.lower() != "authorization" and is_reserved_header(name)


def _read_how(named: CredentialChoice) -> _Way:
    if named.how in ("bearer", "basic"):
        return _Way("header", "Authorization", named.how)
    place, colon, name = named.how.partition(":")
    if place in ("header", "query", "cookie") and colon and is_token(name) and not _is_gates(place, name):
        return _Way(place, name, "plain")
    raise DocumentUnfit(
        "",
        f"What stands behind {named.name}= is no way to send it.",  # and perhaps its value, which nobody prints
        "Write bearer, basic, header:NAME, query:NAME, cookie:NAME or a security scheme of the document.",
    )


def _describe(way: _Way, host: str) -> str:
    what = {"bearer": "A token", "basic": "user:password"}.get(way.scheme, "A key")
    where = "in the body as" if way.place == "body" else f"as the {way.place}"
    return f"{what} of {host}, sent {where} {way.name}."


def _snake(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"[^A-Z0-9]+", "_", words.upper()).strip("_") or "KEY"


# What proves who is asking, among the parameters.


def find_key_names(document: OpenApiDocument) -> set[tuple[str, str]]:
    """Place and name (in small letters) of every apiKey scheme of the document."""
    return {
        (str(each.get("in")), str(each.get("name")).lower())
        for each in list_schemes(document).values()
        if each.get("type") == "apiKey"
    }


def proves_identity(parameter: OperationParameter, keys: set[tuple[str, str]]) -> bool:
    """Whether a parameter says who is asking, so that it is not an agent's."""
    name = parameter.name.lower()
    if parameter.place == "path":
        return False
    if (parameter.place, name) in keys or (
        parameter.place == "header" and name in ("authorization", "proxy-authorization")
    ):
        return True
    if parameter.place == "query" and name in _ALWAYS_TOKENS:
        return True
    if parameter.place == "header" and names_a_key(name):
        return True
    if not _TOKENS.fullmatch(name):
        return False
    return parameter.place in ("header", "cookie") or _says_it_proves(str(parameter.description or ""))


def names_a_key(header: str) -> bool:
    """Whether a header is called as one that says who is asking."""
    return _HEADER_TOKENS.fullmatch(header) is not None


def property_proves_identity(
    document: OpenApiDocument, name: str, said: Any, pointer: str, security: Security, *, is_required: bool
) -> bool:
    """The same of a property of a body, where the operation has credentials of its own: by its name, and what is said of it there and
    where it refers to."""
    if not security.credentials:
        return False
    text = "\n".join(_list_texts(document, said, pointer))[:MAX_TEXT_CHARS]
    if is_required:
        return _names_a_token(name) and _says_it_proves(text)
    # A secret of this body is no other place where the same may be said.
    elsewhere = [each["name"] for each in security.credentials if each["in"] != "body"]
    if any(_names_word(text, name) for name in elsewhere if name != "Authorization"):
        return True  # it may also be said in the place of the credential
    return _names_a_token(name) and (name.lower() in ("access_token", "api_key", "apikey") or _says_it_proves(text))


def _names_a_token(name: str) -> bool:
    return _TOKENS.fullmatch(name) is not None and name.lower() != "password"


def _names_word(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _list_texts(document: OpenApiDocument, said: Any, pointer: str) -> Iterator[str]:
    """What is said of a schema: beside a reference, where that leads, and in the parts that all hold."""
    waiting = [said]
    for _ in range(MAX_SCHEMAS):
        if not waiting:
            return
        each = waiting.pop()
        if not isinstance(each, dict):
            continue
        if isinstance(text := each.get("description"), str):
            yield text[:MAX_TEXT_CHARS]
        if isinstance(each.get("$ref"), str):
            with suppress(DocumentUnfit):  # who reads the schema says what is wrong with it
                waiting.append(document.find(each["$ref"], pointer))
        elif isinstance(parts := each.get("allOf"), list):
            waiting += reversed(parts[:MAX_SCHEMAS])


def _says_it_proves(text: str) -> bool:
    return _SAYS_IT_PROVES.search(text) is not None
