"""Contract: what a worker may ask of a sandbox host, and in which form.

A JSON schema of the heads, one definition for each operation. The host holds every request against it before it looks further; the
page ``docs/reference/boxd.md`` is written from it.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from invocations.sandbox.wire.messages import MIB, WireError

CONTRACT_VERSION = 1
MAX_PACKAGE_BYTES = 16 * MIB
MAX_FOLDER_BYTES = 4096 * MIB
PACKAGE, FOLDER = "package", "folder"
HELLO, HAVE, PUT, RUN, KILL, SNAPSHOT, CHECK, HEALTH = (
    "hello",
    "have",
    "put",
    "run",
    "kill",
    "snapshot",
    "check",
    "health",
)
OUTCOME, REFUSED = "outcome", "refused"
NO_WALLS, KNOWN_WALLS, EVERY_WALL = "none", "known", "every"
# The codes of a refusal: what the worker does about it.
BUSY, DRAINING, LACKING, UNFIT, FORBIDDEN, MALFORMED, REPLAYED, FAILED = CODES = (
    "busy",
    "draining",
    "lacking",
    "unfit",
    "forbidden",
    "malformed",
    "replayed",
    "failed",
)

ENDING = frozenset({UNFIT, MALFORMED, REPLAYED})  # the host closes the connection with such a refusal

_ROOT = Path(__file__).resolve().parents[3]
_DIGEST = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
_TEXT = {"type": "string", "maxLength": 1024}
_NAME = {"type": "string", "minLength": 1, "maxLength": 200}
_OBJECT = {"type": "object"}


def _operation(op: str, about: str, /, **fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": about,
        "type": "object",
        "properties": {"op": {"const": op}, **fields},
        "required": ["op", *fields],
        "additionalProperties": False,
    }


OPERATIONS: dict[str, dict[str, Any]] = {
    HELLO: _operation(
        HELLO,
        "The first request of a connection. A worker of other sources is refused, in words that name both.",
        contract={"type": "integer"},
        sources=_DIGEST,
    ),
    HAVE: _operation(
        HAVE,
        "Whether the host has these bytes. When not, the answer has a ticket for one put.",
        kind={"enum": [PACKAGE, FOLDER]},
        digest=_DIGEST,
        size={"type": "integer", "minimum": 0, "maximum": MAX_FOLDER_BYTES},
    ),
    PUT: _operation(
        PUT,
        "The bytes that a ticket is for, in chunks after this head. The host holds them against their digest; a ticket is taken once.",
        ticket=_NAME,
    ),
    RUN: _operation(
        RUN,
        "One call. The connection is the call: events and the outcome come on it, and when it closes the call is cancelled. "
        "Parts: the profile, the arguments, configuration and secrets, then what each of the files holds, and of those that it sends.",
        name=_NAME,
        key={
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {"tenant": _TEXT, "code": _TEXT, "dependencies": _TEXT, "principal": _TEXT},
                    "required": ["tenant", "code", "dependencies", "principal"],
                    "additionalProperties": False,
                },
            ]
        },
        package=_DIGEST,
        folder={"anyOf": [{"const": ""}, _DIGEST]},
        module=_TEXT,
        entry=_TEXT,
        context=_OBJECT,
        labels={"type": "object", "additionalProperties": _TEXT, "maxProperties": 20},
        program={"type": "array", "items": {"type": "string"}, "maxItems": 1000},
        image=_TEXT,
        server={"type": ["object", "null"]},
        asks=_OBJECT,
        operation={"type": ["object", "null"]},
        remote={"type": ["object", "null"]},
        files={"type": "array", "items": {"type": "string", "minLength": 1}},
        sent_files={"type": "array", "items": {"type": "array", "items": _TEXT, "minItems": 3, "maxItems": 3}},
        replay={"type": "boolean"},
        stream={"type": "boolean"},
        patient={"type": "boolean"},
    ),
    KILL: _operation(
        KILL,
        "End the call of this name, on another connection than the call's. A call of another worker is not ended; none is no error.",
        name=_NAME,
    ),
    SNAPSHOT: _operation(SNAPSHOT, "What the boxes of this host look like now."),
    CHECK: _operation(
        CHECK,
        "The lines of `doctor`: what answers; which walls hold, as last seen; or each wall, looked at anew.",
        walls={"enum": [NO_WALLS, KNOWN_WALLS, EVERY_WALL]},
    ),
    HEALTH: _operation(
        HEALTH, "Whether the host takes calls, how many it has, and for how many days its certificate holds."
    ),
}
ANSWERS = {
    HELLO: "`host`: its machine, with a mark for as long as it lives, `sources`, `contract`, `engine`: whether calls may reach hosts",
    HAVE: "`known`, and a `ticket` when not",
    PUT: "`stored`",
    RUN: "`event`s where `stream` asks for them, then `outcome`; or `refused`, and then nothing has begun",
    KILL: "`ended`: whether there was such a call",
    SNAPSHOT: "`host`, as in `hello`, and one part: the figures as JSON",
    CHECK: "`lines`, each with `mark`, `about`, `said`",
    HEALTH: "`draining`, `calls`, `certificate_days` (null over a unix socket)",
}
REFUSALS = {
    BUSY: "Calls wait here until others have ended, and the call has another host to go to; or what calls bring with them "
    "fills its memory, for which a patient call and a package wait 10 s.",
    DRAINING: "The daemon ends: open calls go on, and no call begins.",
    LACKING: "The package or the folder is not here (any more); it is to be put.",
    UNFIT: "Worker and host are of different sources, or a hello is missing.",
    FORBIDDEN: "The certificate's name is not allowed here, or the call is another worker's.",
    MALFORMED: "The request does not keep to the contract.",
    REPLAYED: "The ticket of a put was used, or is none.",
    FAILED: "The host could not do it.",
}


def build_schema() -> dict[str, Any]:
    """The contract as a document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Requests of a worker to a sandbox host (toolhub-boxd)",
        "$defs": OPERATIONS,
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in OPERATIONS],
    }


@cache
def _validators() -> dict[str, Any]:
    return {name: jsonschema_rs.Draft202012Validator(schema) for name, schema in OPERATIONS.items()}


def check_request(head: dict[str, Any]) -> str:
    """Which operation it is; :class:`WireError` when it is none, or not as the contract has it."""
    name = head.get("op")
    validator = _validators().get(name) if isinstance(name, str) else None
    if validator is None:
        raise WireError(f"There is no operation {str(name)[:40]!r}.")
    if not validator.is_valid(head):
        error = next(validator.iter_errors(head))
        place = "/".join(map(str, error.instance_path))
        raise WireError(f"The request {name} is not as the contract has it, at /{place}: {error.message[:300]}")
    return str(name)


@cache
def compute_sources_digest() -> str:
    """Of the code on both sides of the contract: hosts and workers of different sources do not misunderstand each other, they part."""
    state = hashlib.sha256()
    for place in ("invocations/sandbox", "sandbox", "unitools/capabilities"):
        for path in sorted((_ROOT / place).rglob("*.py")):
            state.update(f"{path.relative_to(_ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return f"sha256:{state.hexdigest()}"


def compute_digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
