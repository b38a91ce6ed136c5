"""PNG pixels: what colour is a pixel of a PNG? As much of the format as browsers write: eight bits, no interlacing."""

from __future__ import annotations

import struct
import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


class Picture:
    def __init__(self, png: bytes) -> None:
        assert png.startswith(SIGNATURE), png[:20]
        self.width, self.height, depth, kind, *_, interlaced = struct.unpack_from(">IIBBBBB", png, 16)
        assert (depth, interlaced) == (8, 0)
        self._step = _CHANNELS[kind]
        data, place = b"", 8
        while place < len(png):
            size, name = struct.unpack_from(">I4s", png, place)
            data += png[place + 8 : place + 8 + size] if name == b"IDAT" else b""
            place += size + 12
        self._rows = self._unfiltered(zlib.decompress(data))

    def _unfiltered(self, data: bytes) -> list[bytes]:
        rows: list[bytes] = []
        before, step, length = bytes(self.width * self._step), self._step, self.width * self._step
        for start in range(0, len(data), length + 1):
            row = bytearray(data[start + 1 : start + 1 + length])
            for i in range(length):
                left, up = row[i - step] if i >= step else 0, before[i]
                corner = before[i - step] if i >= step else 0
                row[i] = row[i] + _predicted(data[start], left, up, corner) & 255
            before = bytes(row)
            rows.append(before)
        return rows

    def pixel(self, x: int, y: int) -> tuple[int, int, int]:
        red, green, blue = self._rows[y][x * self._step : x * self._step + 3]
        return red, green, blue


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    match kind:
        case 0:
            return 0
        case 1:
            return left
        case 2:
            return up
        case 3:
            return (left + up) // 2
    guess = left + up - corner
    return min((left, up, corner), key=lambda each: abs(guess - each))
