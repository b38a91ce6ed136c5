from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from invocations.sandbox.base import (
    BoxKey,
    ConnectionRecord,
    LeftArtifact,
    Limits,
    Profile,
    RunEvent,
    RunOutcome,
    RunStatus,
    SandboxCall,
    SentFile,
    ServiceRecord,
    TenantFile,
)
from invocations.sandbox.wire.calls import (
    decode_call,
    decode_event,
    decode_outcome,
    decode_profile,
    encode_call,
    encode_event,
    encode_outcome,
    encode_profile,
)
from invocations.sandbox.wire.contract import RUN, check_request, compute_digest
from invocations.sandbox.wire.messages import WireError
from unitools.capabilities import Capabilities

PACKAGE = compute_digest(b"package")
CALL = SandboxCall(
    name="inv-1",
    package=b"package",
    module="tool.main",
    entry="run",
    arguments=b'{"a": 1}',
    context={"call_id": "inv_1", "client": {"app": "x"}},
    labels={"toolhub.tool": "a.b.c"},
    config={"region": "eu"},
    secrets={"TOKEN": "s3cret-of-a-tenant"},
    key=BoxKey("acme", "sha256:1", "sha256:2", "agent"),
    dependencies=Path("/deps/1"),
    files=(TenantFile("/data/a.txt", b"\0\xff"),),
    sent_files=(SentFile("art_1", "späti.png", "image/png", b"\x89PNG"), SentFile("fil_1", "a", "text/csv", b"")),
    program=("node", "x.js"),
    server={"package": "npm:x"},
    asks={"tool": "t"},
    operation={"method": "GET"},
    remote={"url": "https://example.org"},
    hidden={"TOKEN": ("a", "b")},
    image="browser",
    replay=True,
)
PROFILE = Profile(
    Limits(wall_ms=5),
    Capabilities.from_json({"net": [{"host": "example.org"}], "secrets": ["TOKEN"]}),
    "shared",
    untrusted=True,
)
OUTCOME = RunOutcome(
    RunStatus.OK,
    value={"a": [1, 2.5, None, "中文 😀", 12345678901234567890]},
    report={"warnings": ["x"]},
    attempts=("fs:/a",),
    stdout="out\n",
    stderr="中",
    cpu_ms=None,
    waited_ms=5,
    files=(TenantFile("/data/b", b"b" * 10),),
    gone=("/data/c",),
    skipped=(("/data/d", "link"),),
    artifacts=(LeftArtifact("a.png", "image/png", b"\x89PNG"), LeftArtifact("e", "", b"")),
    connections=(
        ConnectionRecord("example.org", 443, True, addresses=("1.2.3.4",), bytes_in=5, ms=1.5),
        ConnectionRecord("x", 1, False, service=ServiceRecord("GET", "/a", credentials=("TOKEN",))),
    ),
    steps=(("wait", 0.0, 1.5), ("run", 1.5, 2.0)),
)


def sent(call: SandboxCall, folder: str = "") -> tuple[dict[str, Any], tuple[bytes, ...]]:
    return encode_call(PROFILE, call, package=PACKAGE, folder=folder, stream=True, patient=False)


@pytest.mark.req("OPS-1")
def test_a_call_arrives_as_it_was_sent() -> None:
    head, parts = sent(CALL, PACKAGE)

    assert check_request(head) == RUN
    assert decode_call(head, parts, package=CALL.package, folder=CALL.dependencies) == (PROFILE, CALL)


def test_a_call_of_no_version_arrives_as_well() -> None:
    bare = SandboxCall(name="inv-2", package=b"", module="m", entry="e", arguments=b"", context={})
    head, parts = sent(bare)

    assert decode_call(head, parts, package=b"", folder=None) == (PROFILE, bare)


@pytest.mark.req("TOOLS-1")
def test_no_secret_is_in_a_head() -> None:
    head, parts = sent(CALL)

    assert "s3cret" not in str(head)
    assert any(b"s3cret" in part for part in parts)


def test_an_operators_trust_stays_with_the_worker() -> None:
    head, parts = sent(replace(CALL, trusted=True))

    assert decode_call(head, parts, package=CALL.package, folder=None)[1].trusted is False


def test_a_profile_is_the_same_key_of_boxes_on_the_other_side() -> None:
    found = decode_profile(encode_profile(PROFILE))

    assert found == PROFILE
    assert hash(found) == hash(PROFILE)


@pytest.mark.parametrize("event", [RunEvent("stdout", "Hello 中"), RunEvent("progress", progress={"fraction": 0.5})])
def test_an_event_arrives(event: RunEvent) -> None:
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("outcome", [OUTCOME, RunOutcome(RunStatus.START_FAILED, error_message="No engine.")])
def test_an_outcome_arrives(outcome: RunOutcome) -> None:
    assert decode_outcome(encode_outcome(outcome)[1]) == outcome


@pytest.mark.parametrize("parts", [(), (b"{}", b"", b""), (b"[]", b"", b""), (b'{"status": "odd"}', b"", b"")])
def test_what_is_no_outcome_is_refused(parts: tuple[bytes, ...]) -> None:
    with pytest.raises(WireError):
        decode_outcome(parts)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"op": "exec"}, "no operation 'exec'"),
        ({"op": ["run"]}, "no operation"),
        ({"name": ""}, "/name"),
        ({"mounts": ["/"]}, "mounts"),
        ({"package": "sha256:../../etc"}, "/package"),
        ({"key": {"tenant": "acme"}}, "/key"),
    ],
)
def test_a_request_that_the_contract_does_not_have_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(WireError, match=sentence):
        check_request(sent(CALL)[0] | change)


@pytest.mark.parametrize(
    "parts", [(), (b"{", b"", b"{}", b""), (b"{}", b"", b"{}", b""), (encode_profile(PROFILE), b"", b"[]", b"")]
)
def test_parts_that_are_no_calls_are_refused(parts: tuple[bytes, ...]) -> None:
    with pytest.raises(WireError):
        decode_call(sent(CALL)[0], parts, package=b"", folder=None)
