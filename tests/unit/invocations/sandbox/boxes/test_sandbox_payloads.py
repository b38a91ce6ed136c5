"""Sandbox payloads: what of a call is packed for its box, and what is refused before a box is asked?"""

from __future__ import annotations

import io
import zipfile

import pytest

from invocations.sandbox.base import Profile
from invocations.sandbox.boxes.payloads import UnusableCall, pack_load
from invocations.sandbox.isolation.levels import build_smallest_call


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_package_whose_bytes_are_broken_is_refused_in_a_sentence(method: int) -> None:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", method) as archive:
        archive.writestr("tool/main.py", "def run(): return 1\n" * 100)
    broken = bytearray(memory.getvalue())
    start = broken.index(b"main.py") + len(b"main.py")
    broken[start : start + 20] = b"\xff" * 20
    call = build_smallest_call()
    object.__setattr__(call, "package", bytes(broken))

    with pytest.raises(UnusableCall, match="not a zip that can be read"):
        pack_load(Profile(), call, level="single", load_s=60)
