"""Model provider: what model calls are measured against, ``python -m bench.model_provider PORT``: OpenAI's chat on this machine.

Each answer has its first token after a fixed time, and the others at a fixed rate, by the clock and not one after the other: what a
proxy adds is all that differs. ``GET /journal`` says how many requests came and empties the count.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

MODEL = "gpt-4o"
FIRST_TOKEN_S, TOKENS, TOKENS_PER_S = 0.08, 64, 200.0
MARK = "qzx"  # begins every token, and is nowhere else
USAGE = {"prompt_tokens": 12, "completion_tokens": TOKENS, "total_tokens": 12 + TOKENS}
_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{}\r\n\r\n"


def _frame(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": MODEL, "choices": [choice], **more}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


PIECES = [_chunk(_frame({"role": "assistant", "content": f"{MARK}0 "}))]
PIECES += [_chunk(_frame({"content": f"{MARK}{number} "})) for number in range(1, TOKENS)]
END = [_frame({}, "stop"), _frame({}, usage=USAGE, choices=[]), b"data: [DONE]\n\n"]


def build_whole() -> bytes:
    text = "".join(f"{MARK}{number} " for number in range(TOKENS))
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    said = {"id": "c", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice], "usage": USAGE}
    return json.dumps(said).encode()


class Provider:
    def __init__(self, tokens_per_s: float = TOKENS_PER_S) -> None:
        self.asked, self._every_s = 0, 1 / tokens_per_s

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                sizes = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
                body = await reader.readexactly(int(sizes[0])) if sizes else b"{}"
                await self._answer(first, json.loads(body), writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _answer(self, first: str, asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if first.startswith("GET /journal"):
            self._write(writer, json.dumps({"asked": self.asked}).encode())
            self.asked = 0
            return
        self.asked += 1
        begun = asyncio.get_running_loop().time()
        if not asked.get("stream"):
            await asyncio.sleep(FIRST_TOKEN_S + self._every_s * TOKENS)
            self._write(writer, build_whole())
            return
        writer.write(_HEAD.format("text/event-stream", "Transfer-Encoding: chunked").encode())
        for number, piece in enumerate(PIECES):
            at = begun + FIRST_TOKEN_S + self._every_s * number
            await asyncio.sleep(max(0.0, at - asyncio.get_running_loop().time()))
            writer.write(piece)
            await writer.drain()
        writer.write(b"".join(map(_chunk, END)) + b"0\r\n\r\n")
        await writer.drain()

    def _write(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        writer.write(_HEAD.format("application/json", f"Content-Length: {len(body)}").encode() + body)


async def main(port: int, tokens_per_s: float) -> None:
    server = await asyncio.start_server(Provider(tokens_per_s).serve, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else TOKENS_PER_S))
