"""Boxd page: the contract between workers and sandbox hosts, from its schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from invocations.sandbox.wire import contract, messages, streams
from toolhub.management.reference.markdown import format_code, format_page, format_table

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB, MIB = 1024, 1024 * 1024
INTRODUCTION = """\
What a worker and `toolhub-boxd` say to each other. Both are of one version of toolhub, so this is no interface for others' programs;
it is written down for those who judge what crosses the line. As a document: [boxd.schema.json](boxd.schema.json). How hosts are
set up: [Run tools on machines of their own](../how-to/run-sandbox-hosts.md)."""


def schema_document() -> str:
    return json.dumps(contract.build_schema(), indent=2) + "\n"


def boxd_page() -> str:
    return format_page(
        "boxd",
        "invocations/sandbox/wire",
        INTRODUCTION,
        "## Frames",
        "A unix socket, or TLS 1.3 with certificates of both sides. A frame is "
        '`"TH" version:u8 kind:u8 head length:u32 tail length:u32 head tail`; the head is JSON whose `parts` says how long the byte '
        "strings are that follow, in the tail and then in chunks. Lengths are refused before anything is allocated.",
        format_table(("bound", "value"), _list_bounds()),
        "## Operations",
        *_describe_operations(),
        "## Refusals",
        'Nothing of a request that is refused has begun. `{op: "refused", code, message}`; the worker asks the next host.',
        format_table(("code", "meaning"), [(format_code(code), said) for code, said in contract.REFUSALS.items()]),
    )


def _list_bounds() -> list[tuple[str, str]]:
    return [
        ("a head", f"{messages.MAX_HEAD_BYTES // KIB} KiB"),
        ("a tail, a chunk", f"{messages.MAX_CHUNK_BYTES // MIB} MiB"),
        ("the parts of a request", f"{messages.MAX_REQUEST_BYTES // MIB} MiB"),
        ("the parts of an answer", f"{messages.MAX_ANSWER_BYTES // MIB} MiB"),
        ("a package", f"{contract.MAX_PACKAGE_BYTES // MIB} MiB"),
        ("a folder of dependencies", f"{contract.MAX_FOLDER_BYTES // MIB} MiB"),
        ("each side says that it is there, while a call is on", f"every {messages.PING_EVERY_S:g} s"),
        ("who says nothing is gone", f"after {streams.SILENCE_S:g} s"),
    ]


def _describe_operations() -> Iterator[str]:
    for name, schema in contract.OPERATIONS.items():
        yield f"### `{name}`"
        yield schema["description"]
        fields = [
            (format_code(field), format_code(json.dumps(form, sort_keys=True)))
            for field, form in schema["properties"].items()
            if field != "op"
        ]
        if fields:
            yield format_table(("field", "form"), fields)
        yield f"Answer: {contract.ANSWERS[name]}."
