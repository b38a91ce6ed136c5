"""Calls on the wire: a call, its events and its outcome, as heads and parts.

What a tool or a tenant may have chosen is in parts, and what only names something in the head. Nothing of a secret is in a head.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import (
    BoxKey,
    ConnectionRecord,
    LeftArtifact,
    Profile,
    RunEvent,
    RunOutcome,
    RunStatus,
    SandboxCall,
    SentFile,
    ServiceRecord,
    TenantFile,
)
from invocations.sandbox.wire.contract import OUTCOME, RUN
from invocations.sandbox.wire.messages import WireError

if TYPE_CHECKING:
    from pathlib import Path

_PLAIN = ("module", "entry", "context", "labels", "image", "server", "asks", "operation", "remote", "replay")
_BESIDE = frozenset(
    {"stdout", "stderr", "files", "artifacts", "connections"}
)  # of an outcome, what is written in another way
_PROFILES = 512  # that are remembered: a call has one of few


@lru_cache(_PROFILES)
def encode_profile(profile: Profile) -> bytes:
    return json.dumps(profile.to_json(), sort_keys=True).encode()


@lru_cache(_PROFILES)
def decode_profile(text: bytes) -> Profile:
    try:
        return Profile.from_json(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WireError(f"The profile of the call cannot be read: {error}") from error


def encode_call(
    profile: Profile, call: SandboxCall, *, package: str, folder: str, stream: bool, patient: bool
) -> tuple[dict[str, Any], tuple[bytes, ...]]:
    """The head and the parts of a ``run``. ``package`` and ``folder``: digests of what the host has by now."""
    head = {name: getattr(call, name) for name in _PLAIN} | {
        "op": RUN,
        "name": call.name,
        "key": _encode_key(call.key),
        "package": package,
        "folder": folder,
        "program": list(call.program),
        "files": [file.path for file in call.files],
        "sent_files": [[each.id, each.name, each.media_type] for each in call.sent_files],
        "stream": stream,
        "patient": patient,
    }
    settings = {"config": call.config, "secrets": call.secrets, "hidden": call.hidden}
    parts = (encode_profile(profile), call.arguments, json.dumps(settings).encode())
    return head, (*parts, *(each.content for each in call.files), *(each.content for each in call.sent_files))


def _encode_key(key: BoxKey | None) -> dict[str, str] | None:
    if key is None:
        return None
    return {
        "tenant": key.tenant,
        "code": key.code,
        "dependencies": key.dependencies,
        "principal": key.principal,
    }


def decode_call(
    head: dict[str, Any], parts: tuple[bytes, ...], *, package: bytes, folder: Path | None
) -> tuple[Profile, SandboxCall]:
    """``head`` has been held against the contract."""
    paths, sent = head["files"], head["sent_files"]
    if len(parts) != 3 + len(paths) + len(sent):
        raise WireError("A call has a part for its profile, its arguments, its settings and each of its files.")
    profile, arguments, settings, *contents = parts
    try:
        said = json.loads(settings)
        config, secrets, hidden = dict(said["config"]), dict(said["secrets"]), dict(said["hidden"])
        return decode_profile(profile), SandboxCall(
            **{name: head[name] for name in _PLAIN},
            name=head["name"],
            package=package,
            arguments=arguments,
            key=BoxKey(**head["key"]) if head["key"] is not None else None,
            dependencies=folder,
            program=tuple(head["program"]),
            files=tuple(TenantFile(path, content) for path, content in zip(paths, contents, strict=False)),
            sent_files=tuple(
                SentFile(id, name, media_type, content)
                for (id, name, media_type), content in zip(sent, contents[len(paths) :], strict=True)
            ),
            config=config,
            secrets=secrets,
            hidden={name: tuple(texts) for name, texts in hidden.items()},
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WireError(f"The settings of the call cannot be read: {type(error).__name__}") from error


def encode_event(event: RunEvent) -> bytes:
    return json.dumps([event.stream, event.text, event.progress]).encode()


def decode_event(text: bytes) -> RunEvent:
    stream, said, progress = json.loads(text)
    return RunEvent(stream, said, progress)


def encode_outcome(outcome: RunOutcome) -> tuple[dict[str, Any], tuple[bytes, ...]]:
    head = {"op": OUTCOME, "files": len(outcome.files), "artifacts": len(outcome.artifacts)}
    about = {name: getattr(outcome, name) for name in _OUTCOME} | {
        "connections": [asdict(each) for each in outcome.connections],
        "files": [each.path for each in outcome.files],
        "artifacts": [[each.name, each.claim] for each in outcome.artifacts],
    }
    texts = (json.dumps(about).encode(), outcome.stdout.encode(), outcome.stderr.encode())
    contents = [each.content for each in outcome.files] + [each.content for each in outcome.artifacts]
    return head, (*texts, *contents)


def decode_outcome(parts: tuple[bytes, ...]) -> RunOutcome:
    """The host is believed, as the engine is."""
    try:
        about, stdout, stderr, *contents = parts
        said = json.loads(about)
        files, artifacts = said.pop("files"), said.pop("artifacts")
        left = [
            LeftArtifact(name, claim, content)
            for (name, claim), content in zip(artifacts, contents[len(files) :], strict=True)
        ]
        return RunOutcome(
            **said
            | {
                "status": RunStatus(said["status"]),
                "attempts": tuple(said["attempts"]),
                "gone": tuple(said["gone"]),
                "skipped": tuple((path, why) for path, why in said["skipped"]),
                "steps": tuple((name, begin, end) for name, begin, end in said["steps"]),
                "connections": tuple(map(_decode_connection, said["connections"])),
            },
            stdout=stdout.decode(),
            stderr=stderr.decode(),
            files=tuple(TenantFile(path, content) for path, content in zip(files, contents, strict=False)),
            artifacts=tuple(left),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WireError(f"The outcome cannot be read: {error}") from error


def _decode_connection(said: dict[str, Any]) -> ConnectionRecord:
    service = said["service"]
    if service is not None:
        service = ServiceRecord(**service | {"credentials": tuple(service["credentials"])})
    return ConnectionRecord(**said | {"addresses": tuple(said["addresses"]), "service": service})


_OUTCOME = tuple(each.name for each in fields(RunOutcome) if each.name not in _BESIDE)
