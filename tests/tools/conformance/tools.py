"""Tools: what do the tools do that the official conformance suite of MCP calls by name?

The texts and the numbers are the suite's. Each runs in the sandbox, as any tool does.
"""

from __future__ import annotations

import io
import struct
import time
import wave
import zlib
from typing import Any

from unitools import runtime

PAUSE_S = 0.4  # between two reports: the hub tells of four in a second at most


def _png() -> bytes:
    """One red point."""
    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\x00\xff\x00\x00")), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def _wav() -> bytes:
    """A hundredth of a second of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 80)
    return file.getvalue()


def logs_and_reports() -> dict[str, Any]:
    runtime.log("The tool has begun.")
    runtime.progress(0.5)
    return {"text": "Done."}


def simple_text() -> dict[str, Any]:
    return {"text": "This is a simple text response for testing."}


def error_handling() -> dict[str, Any]:
    raise runtime.UpstreamError("This tool intentionally returns an error for testing")


def with_progress() -> dict[str, Any]:
    for done in (0, 0.5, 1):
        runtime.progress(done)
        time.sleep(PAUSE_S)
    return {"text": "Done."}


def image_content() -> dict[str, Any]:
    return runtime.artifact("point.png", _png(), media_type="image/png")


def audio_content() -> dict[str, Any]:
    return runtime.artifact("silence.wav", _wav(), media_type="audio/wav")


def embedded_resource() -> dict[str, Any]:
    return runtime.artifact("resource.txt", "This is an embedded resource content.", media_type="text/plain")


def multiple_content_types() -> dict[str, Any]:
    runtime.artifact("point.png", _png(), media_type="image/png")
    runtime.artifact("data.json", '{"test":"data","value":123}', media_type="application/json")
    return {"text": "Multiple content types test:"}


def json_schema_2020_12_tool(**given: Any) -> dict[str, Any]:
    return {"given": sorted(given)}


def greet(name: str) -> dict[str, Any]:
    return {"text": f"Hello, {name}!"}


def slow_compute(seconds: float = 0, label: str = "") -> dict[str, Any]:
    time.sleep(seconds)
    return {"label": label, "seconds": seconds}


def failing_job() -> dict[str, Any]:
    time.sleep(1)
    raise runtime.UpstreamError("The job failed, as it always does.")


def confirm_delete(filename: str) -> dict[str, Any]:
    return {"deleted": filename}
