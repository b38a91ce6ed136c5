"""What does a box get to do one call?

The tool's package is unpacked here, because unpacking in the box would load a library there for each call.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sandbox import protocol

if TYPE_CHECKING:
    from invocations.sandbox.base import Profile, SandboxCall

_MAX_UNPACKED_BYTES = protocol.MAX_FRAME_BYTES


class UnusableCall(Exception):
    """The call cannot be handed to any box. The message says why."""


def pack_work(profile: Profile, call: SandboxCall) -> bytes:
    """The body of a ``CALL`` frame: the arguments, what the tenant set for the tool, then the package's files.

    Configuration and secrets are a part of their own, which the runner does not look into: they reach the tool's process
    and no environment, command line, label or file.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(call.package)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > _MAX_UNPACKED_BYTES:
                raise UnusableCall(f"The tool's package has more than {_MAX_UNPACKED_BYTES} bytes.")
            contents = [archive.read(entry) for entry in entries]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise UnusableCall(f"The tool's package is not a zip that can be read: {error}") from error
    head: dict[str, Any] = {
        "module": call.module,
        "entry": call.entry,
        "context": call.context,
        "limits": asdict(profile.limits),
        "files": [entry.filename for entry in entries],
    }
    settings = json.dumps({"config": call.config, "secrets": call.secrets}).encode()
    body = protocol.pack(head, call.arguments, settings, *contents)
    if len(body) > protocol.MAX_FRAME_BYTES:
        raise UnusableCall(f"The tool's package and arguments have more than {protocol.MAX_FRAME_BYTES} bytes.")
    return body
