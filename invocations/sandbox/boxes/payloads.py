"""Payloads: what a box gets, once and for each call.

The tool's package is unpacked here, because unpacking in the box would load a library there for each call.
"""

from __future__ import annotations

import io
import json
import lzma
import zipfile
import zlib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sandbox import protocol

if TYPE_CHECKING:
    from invocations.sandbox.base import Profile, SandboxCall

# For a call to import the tool's own modules, where what they import of others is imported already. Time in which other work of
# the machine keeps it from a processor is given back, up to the time of a load.
IMPORT_S = 10.0
_MAX_UNPACKED_BYTES = protocol.MAX_FRAME_BYTES


class UnusableCall(Exception):
    """The call cannot be handed to any box. The message says why."""


def pack_load(profile: Profile, call: SandboxCall, *, level: str, load_s: float, ahead: bool = False) -> bytes:
    """The body of a ``LOAD`` frame: what the box is for, then the package's files.

    ``load_s``: how long it may take until the tool can be called. ``ahead``: what the files import of others is imported
    before the calls, and what is left to each of them has a shorter time; a server that Node.js runs is started before its one call.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(call.package)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > _MAX_UNPACKED_BYTES:
                raise UnusableCall(f"The tool's package has more than {_MAX_UNPACKED_BYTES} bytes.")
            contents = [archive.read(entry) for entry in entries]
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
    ) as error:
        raise UnusableCall(f"The tool's package is not a zip that can be read: {error}") from error
    capabilities = profile.capabilities.to_json()
    head: dict[str, Any] = {
        "level": level,
        "ahead": ahead,
        "load_ms": round(load_s * 1000),
        "import_ms": round((min(IMPORT_S, load_s) if ahead else load_s) * 1000),
        "limits": asdict(profile.limits),
        "fs": capabilities["fs"],
        "net": bool(capabilities["net"] or capabilities["cidr"]),
        "proc": capabilities["proc"],
        "browser": bool(capabilities["browser"]),
        "files": [entry.filename for entry in entries],
        "program": {"argv": list(call.program)} if call.program else None,
        "server": call.server,
        "settings": call.config if ahead and call.is_on_node else {},
        "operation": call.operation,
        "remote": call.remote,
    }
    return _checked(protocol.pack(head, *contents), "package")


def pack_call(call: SandboxCall, *, stream: bool) -> bytes:
    """The body of a ``CALL`` frame: the arguments, what the tenant set for the tool, the files it is given, and those that it sends.

    Configuration and secrets are a part of their own, which the supervisor does not look into: they reach the tool's
    process and no environment, command line, label or file. Where the gate asks others for the tool, secrets stay here.
    """
    head: dict[str, Any] = {
        "module": call.module,
        "entry": call.entry,
        "asks": call.asks,
        "context": call.context,
        "stream": stream,
        "replay": call.replay,
        "inputs": [{"path": file.path} for file in call.files],
        "sent_files": [{"id": each.id, "name": each.name, "media_type": each.media_type} for each in call.sent_files],
    }
    secrets = {} if call.is_by_gate else call.secrets
    settings = json.dumps({"config": call.config, "secrets": secrets}).encode()
    contents = [*(each.content for each in call.files), *(each.content for each in call.sent_files)]
    return _checked(protocol.pack(head, call.arguments, settings, *contents), "arguments and files")


def _checked(body: bytes, what: str) -> bytes:
    if len(body) > protocol.MAX_FRAME_BYTES:
        raise UnusableCall(f"The tool's {what} have more than {protocol.MAX_FRAME_BYTES} bytes.")
    return body
