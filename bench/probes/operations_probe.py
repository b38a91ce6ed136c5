"""Prints what our reader makes of a document, as JSON: ``FILE SERVER COUNT``, for COUNT operations spread over it, or for all (0)."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from unitools.brought_operations import derive_operation_segment, derive_service_group, make_manifest
from unitools.calls import ToolSpec
from unitools.dialects import DRIVERS, DialectError, render
from unitools.openapi.documents import DocumentUnfit, read_document
from unitools.openapi.operations import Choices


def is_rendered(manifest: dict[str, Any]) -> bool:
    """Whether every dialect takes the tool."""
    spec = ToolSpec(manifest["id"].rpartition(".")[2], manifest["description"], manifest["input_schema"])
    try:
        for driver in DRIVERS:
            render([spec], driver.dialect)
    except DialectError:
        return False
    return True


def main(file: str, server: str, count: int) -> None:
    begun = time.perf_counter()
    document = read_document(Path(file).read_bytes())
    entries = list(document.operations.values())
    chosen = entries[:: max(1, len(entries) // count)][:count] if count else entries
    choices = Choices(servers=(server,) if server else ())
    group = derive_service_group(document.title)
    made, refusals = [], Counter[str]()
    for entry in chosen:
        try:
            made.append(make_manifest(document, entry, f"{group}.{derive_operation_segment(entry)}", choices)[0])
        except DocumentUnfit as error:
            refusals[error.message.partition(":")[0][:100]] += 1
    seconds = time.perf_counter() - begun
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    listing = [
        {
            "name": each["id"],
            "description": each["description"],
            "inputSchema": each["input_schema"],
            "outputSchema": each["output_schema"],
        }
        for each in made
    ]
    found = {
        "operations": len(chosen),
        "manifests": len(made),
        "rendered": sum(map(is_rendered, made)),
        "refusals": dict(refusals),
        "seconds": seconds,
        "mib": mib,
        "listing_bytes": len(json.dumps(listing, separators=(",", ":")).encode()),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
