"""A proxy before an S3 server that delays each request and counts requests by their kind."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

_END: Final = b"\r\n\r\n"
_MOST_HEAD: Final = 1 << 16
_CONTINUE: Final = b"HTTP/1.1 100 Continue" + _END
_BUCKET_PARTS: Final = 2
"""Parts of a path that names a bucket alone: what is before its first slash, and the bucket."""


@dataclass
class Traffic:
    """The requests since `clear`, each by its kind and path, and when the proxy got and answered it."""

    requests: list[tuple[str, str, float, float]] = field(default_factory=list)

    def clear(self) -> None:
        """Forgets what was seen."""
        self.requests.clear()

    def counts(self) -> dict[str, int]:
        """Requests by kind."""
        return dict(sorted(Counter(kind for kind, *_ in self.requests).items()))

    def waited(self) -> float:
        """Seconds in which at least one request was under way: what overlaps counts once."""
        total = latest = 0.0
        for begun, ended in sorted((begun, ended) for _, _, begun, ended in self.requests):
            total += max(0.0, ended - max(begun, latest))
            latest = max(latest, ended)
        return total

    def in_turn(self) -> int:
        """The most requests of which each began after the end of the one before: what other processes take does not
        change it.
        """
        return in_turn((begun, ended) for _, _, begun, ended in self.requests)


def in_turn(spans: Iterable[tuple[float, float]]) -> int:
    """The most spans, of a beginning and an end, of which each begins after the end of the one before."""
    count, latest = 0, 0.0
    for ended, begun in sorted((ended, begun) for begun, ended in spans):
        if begun >= latest:
            count, latest = count + 1, ended
    return count


def kind_of(method: str, target: str) -> str:
    """GET, PUT, HEAD, DELETE or POST; LIST for a GET of a bucket."""
    parts = urlsplit(target)
    is_bucket = len([part for part in parts.path.split("/") if part]) < _BUCKET_PARTS
    return "LIST" if method == "GET" and is_bucket else method


@contextmanager
def delaying_proxy(server_url: str, delay_seconds: float) -> Iterator[tuple[str, Traffic]]:
    """A proxy before a server of this machine; its address and what it sees."""
    traffic, loop, port = Traffic(), asyncio.new_event_loop(), urlsplit(server_url).port or 80
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve() -> asyncio.Server:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _serve(reader, writer, port, delay_seconds, traffic)

        return await asyncio.start_server(answer, "127.0.0.1", 0, limit=_MOST_HEAD)

    async def end() -> None:
        server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(serve(), loop).result()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", traffic
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, delay: float, traffic: Traffic
) -> None:
    """Answers the requests of one connection over a connection of its own to the server."""
    below, above = await asyncio.open_connection("127.0.0.1", port)
    try:
        while True:
            try:
                head = await reader.readuntil(_END)
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return
            begun = time.monotonic()
            method, target = head.split(b" ", 2)[:2]
            lines = head[: -len(_END)].split(b"\r\n")
            if any(line.lower().startswith(b"expect:") for line in lines):
                lines = [line for line in lines if not line.lower().startswith(b"expect:")]
                writer.write(_CONTINUE)
            body = await _body(reader, _fields(lines))
            await asyncio.sleep(delay)
            above.write(b"\r\n".join(lines) + _END + body)
            answered = await below.readuntil(_END)
            # A client may send its next request when it has the answer: this one is counted before.
            path = target.decode()
            got = b"" if method == b"HEAD" else await _body(below, _fields(answered.split(b"\r\n")), answered)
            traffic.requests.append((kind_of(method.decode(), path), path, begun, time.monotonic()))
            writer.write(answered + got)
            await writer.drain()
    finally:
        above.close()
        writer.close()


def _fields(lines: list[bytes]) -> Mapping[bytes, bytes]:
    pairs = (line.split(b":", 1) for line in lines[1:] if b":" in line)
    return {name.strip().lower(): value.strip().lower() for name, value in pairs}


async def _body(reader: asyncio.StreamReader, fields: Mapping[bytes, bytes], answer: bytes = b"") -> bytes:
    """The body of a request, or of the `answer`, as it is on the wire."""
    if answer and answer.split(b" ", 2)[1] in (b"204", b"304"):
        return b""
    if fields.get(b"transfer-encoding") != b"chunked":
        return await reader.readexactly(int(fields.get(b"content-length", b"0")))
    parts = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        parts += [line, await reader.readexactly(size + 2)]
        if not size:
            return b"".join(parts)
