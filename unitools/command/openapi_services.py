"""Command ``unitools bring openapi FILE``: the manifests of operations of a service, from the document that describes it.

The document is a file: it is never fetched, so that what a person has read is what is brought. Nothing is chosen beforehand.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.command.pack import read_file_bytes, write_file
from unitools.command.terminal import (
    GOOD,
    NO,
    CannotRun,
    format_install_hint,
    format_shown,
    print_changes,
    print_lines,
    read_json,
)
from unitools.publications import check_group, derive_package_name

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from unitools.brought_operations import Drafts
    from unitools.openapi.documents import OpenApiDocument, OperationEntry
    from unitools.openapi.operations import Choices

MADE_FILE = "as_brought.json"  # what the document alone made, by which the next run sees what it says otherwise
_ACCOUNT = re.compile(r"account(?:=(.+))?")
_SECRET = re.compile(r"([A-Z][A-Z0-9_]{0,63})(?:=(.+))?")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE", help="OpenAPI 3.1, 3.0 or Swagger 2.0, as JSON or YAML")
    command.add_argument("--list", action="store_true", help="print the operations, and write nothing")
    command.add_argument(
        "--operation", action="append", default=[], metavar="ID", help="as --list has it; again for more"
    )
    command.add_argument("--tag", action="append", default=[], metavar="TAG", help="all operations that have it")
    command.add_argument("--group", default="", metavar="group.package", help="what the tools stand under in a hub")
    command.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="URL",
        help="where the document names several, or none by https",
    )
    command.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="NAME[=HOW]",
        help="what a credential is called, and how it is sent: bearer, basic, header:NAME, query:NAME, cookie:NAME, a scheme. "
        "`account`, or account=SCHEME: the service is asked as the person whom a call is for, by their own account there",
    )
    command.add_argument(
        "--idempotency-header", default="", metavar="NAME", help="in which the service takes the key of a repeated call"
    )
    command.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="instead of one named after the group")


def run(options: argparse.Namespace) -> int:
    if any(find_spec(name) is None for name in ("jsonschema", "jsonschema_rs")):
        raise CannotRun(f"Documents of services are read with more packages: {format_install_hint('hub')}")
    from unitools import brought_operations  # noqa: PLC0415  the extra is needed for these only
    from unitools.openapi import documents  # noqa: PLC0415  as above

    try:
        document = documents.read_document(read_file_bytes(options.file))
        if options.list:
            listed = document.select((), options.tag) if options.tag else list(document.operations.values())
            return _offer(document, listed)
        group = check_group(options.group or brought_operations.derive_service_group(document.title))
        folder: Path = options.output or Path(derive_package_name(group))
        existing = _read_manifests(folder)
        if existing or options.operation or options.tag:
            _tell_unread(document)  # one of them may be what is chosen
        chosen = document.select(options.operation, options.tag)
        if not existing and not chosen:
            return _offer(document, list(document.operations.values()))
        earlier = _read_made(folder)
        said = _read_choices(options, earlier.get("choices", {}))
        before = [str(each["origin"]["operation"]) for each in existing]
        gone = [each for each in before if each not in document.operations]
        entries = {each.id: each for each in [*(document.operations[id] for id in before if id not in gone), *chosen]}
        choices = _make_choices(said, group)
        found = brought_operations.draft_operations(
            document,
            list(entries.values()),
            group,
            choices,
            existing,
            earlier.get("operations"),
            rechosen=document.operations if said != earlier.get("choices") else (),
        )
    except documents.DocumentUnfit as error:
        sys.stderr.write(
            f"{format_shown(error.message, 400)}\n  at {format_shown(error.pointer or '/', 200)}\n  {error.remedy}\n"
        )
        return NO
    except ValueError as error:
        raise CannotRun(str(error)) from error
    if found.drafts:  # else a choice that does for none would be taken again the next time
        _write(folder, found, said, earlier.get("operations", {}))
    _report(folder, found, gone)
    return NO if gone or found.refusals else GOOD


def _read_manifests(folder: Path) -> list[dict[str, Any]]:
    """Those of an earlier run, which a person may have changed."""
    found = []
    for path in sorted((folder / "manifests").glob("*.json")):
        said = read_json(path)
        origin = said.get("origin") if isinstance(said, dict) else None
        if isinstance(said, dict) and not (isinstance(origin, dict) and "document" in origin):
            continue  # it was not brought from a document
        if not (isinstance(said, dict) and isinstance(origin, dict) and _is_operation(said, origin)):
            raise CannotRun(f"{path} is no manifest of an operation any more. Correct it, or remove it.")
        found.append(said)
    return found


def _is_operation(said: dict[str, Any], origin: dict[str, Any]) -> bool:
    implementation = said.get("implementation")
    texts = (said.get("id"), said.get("version"), origin.get("operation"), origin.get("operation_digest"))
    return (
        all(isinstance(each, str) for each in texts)
        and isinstance(implementation, dict)
        and isinstance(implementation.get("operation"), dict)
    )


def _read_made(folder: Path) -> dict[str, Any]:
    """What an earlier run wrote down of the document and of the choices beside it; empty without one."""
    path = folder / MADE_FILE
    if not path.is_file():
        return {}
    said = read_json(path)
    if not (isinstance(said, dict) and _is_as_made(said)):
        raise CannotRun(f"{path} is not as it was written. Restore it, or remove it and hold the drafts against yours.")
    return said


def _is_as_made(said: dict[str, Any]) -> bool:
    choices, operations = said.get("choices", {}), said.get("operations", {})
    return (
        isinstance(choices, dict)
        and all(isinstance(choices.get(name, []), list) for name in ("servers", "secrets"))
        and isinstance(operations, dict)
        and all(isinstance(each, dict) and isinstance(each.get("implementation"), dict) for each in operations.values())
    )


def _offer(document: OpenApiDocument, entries: Sequence[OperationEntry]) -> int:
    name = f"{format_shown(document.title)} {format_shown(document.version)}"
    print_lines(f"{name} has {len(document.operations):,} operations; choose with --operation ID or --tag TAG:")
    for each in entries:
        effect = "Read " if each.method in ("GET", "HEAD") else "Write"
        place = "" if each.id == each.place else f"  {format_shown(each.place, 200)}"
        tags = f"  [{format_shown(', '.join(each.tags))}]" if each.tags else ""
        summary = format_shown(each.summary.strip().partition("\n")[0])
        print_lines(f"  {effect}  {format_shown(each.id, 200)}{place}{tags}  {summary}")
    _tell_unread(document)
    return GOOD


def _tell_unread(document: OpenApiDocument) -> None:
    for name, part in document.unread.list_named():
        print_lines(f"  Not listed: {format_shown(name, 200)}. {format_shown(part.message, 400)} {part.remedy}")


def _read_choices(options: argparse.Namespace, before: dict[str, Any]) -> dict[str, Any]:
    """What this run says, and else what an earlier one said."""
    if options.idempotency_header and not _HEADER.fullmatch(options.idempotency_header):
        raise CannotRun(f"--idempotency-header {options.idempotency_header[:60]!r} is no name of a header.")
    return {
        "servers": options.server or before.get("servers", []),
        "secrets": options.secret or before.get("secrets", []),
        "idempotency_header": options.idempotency_header or before.get("idempotency_header", ""),
    }


def _make_choices(said: dict[str, Any], group: str) -> Choices:
    from unitools.openapi.account_security import AccountChoice  # noqa: PLC0415  as above
    from unitools.openapi.operations import Choices  # noqa: PLC0415  as above
    from unitools.openapi.security import CredentialChoice  # noqa: PLC0415  as above

    secrets, account = [], None
    for text in said["secrets"]:
        if asked := _ACCOUNT.fullmatch(text):
            account = AccountChoice(asked[1] or "")
            continue
        found = _SECRET.fullmatch(text)
        if found is None:
            # What was typed is not said again: it may be the secret itself.
            raise CannotRun(
                "--secret is NAME or NAME=HOW, with NAME in capitals, or account. A value never stands here."
            )
        secrets.append(CredentialChoice(found[1], found[2] or ""))
    if account is not None and secrets:
        raise CannotRun("A service is asked as a person or with secrets of the tenant: --secret account stands alone.")
    prefix = group.rpartition(".")[2].upper()[:30]
    return Choices(
        tuple(said["servers"]),
        tuple(secrets),
        said["idempotency_header"],
        prefix if prefix[0].isalpha() else f"S_{prefix}",
        account,
    )


def _write(folder: Path, found: Drafts, said: dict[str, Any], made: dict[str, Any]) -> None:
    try:
        (folder / "manifests").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotRun(f"{folder} cannot be made: {error.strerror}.") from error
    operations = made | {draft.made["origin"]["operation"]: draft.made for draft in found.drafts}
    write_file(folder / MADE_FILE, _json({"choices": said, "operations": operations}))
    for draft in found.drafts:
        write_file(folder / "manifests" / f"{draft.document['id']}.json", _json(draft.document))


def _json(value: Any) -> bytes:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode()


def _report(folder: Path, found: Drafts, gone: list[str]) -> None:
    for draft in found.drafts:
        document = draft.document
        operation = document["implementation"]["operation"]
        place = format_shown(operation["server"] + operation["path"], 300)
        print_lines(f"{document['id']} {document['version']}  {document['side_effect']}, {operation['method']} {place}")
        print_changes(draft.changes)
        for note in draft.diagnostics:
            print_lines(f"  {format_shown(note.message, 200)}", f"      at {format_shown(note.pointer, 200)}")
    for refusal in found.refusals:
        what = f"{format_shown(refusal.operation, 200)} is not brought: {format_shown(refusal.message, 300)}"
        sys.stderr.write(f"{what}\n  at {format_shown(refusal.pointer, 200)}\n  {refusal.remedy}\n")
    for name in gone:
        sys.stderr.write(
            f"The document has no operation {format_shown(name, 200)} any more; its manifest is left as it is.\n"
        )
    if found.drafts:
        print_lines(f"Read and correct them (effect, description, limits), then: unitools pack {folder}")
