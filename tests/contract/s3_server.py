"""An S3 server on loopback for tests: moto behind one lock (its conditional PUT is check-then-write), with faults on
demand.

And tables on whatever server it is: how they get there, what is there, and back to a folder to be looked at.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import boto3
import pyarrow as pa
from moto.s3.models import s3_backends
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from hudi_core.query.request import MetadataMode
from hudi_core.table import HudiTable

BUCKET = "bucket"
CREDENTIALS = {"key": "testing", "secret": "testing", "region": "us-east-1"}
CONFLICT = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ConditionalRequestConflict</Code>'
    b"<Message>A conflicting conditional operation is under way</Message></Error>"
)
FAILURE = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>try again</Message></Error>'


class S3Server:
    """`options` opens it with hudi_core.storage. The next conditional PUTs lose their answers or meet a conflict,
    a number of times.
    """

    def __init__(self) -> None:
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._server: Any = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_Connection)
        self.url = f"http://127.0.0.1:{self._server.port}"
        self.options = {"endpoint_url": self.url, **CREDENTIALS}
        self.lost_answers = 0
        self.conflicts = 0
        self.conditional_puts = 0
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def client(self) -> Any:
        """A boto3 client of the server."""
        return client_of(self)

    def stop(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        conditional = environ["REQUEST_METHOD"] == "PUT" and (
            "HTTP_IF_NONE_MATCH" in environ or "HTTP_IF_MATCH" in environ
        )
        with self._lock:
            if conditional:
                self.conditional_puts += 1
                if self.conflicts > 0:
                    self.conflicts -= 1
                    return _answer(start_response, "409 Conflict", CONFLICT)
                if self.lost_answers > 0:
                    self.lost_answers -= 1
                    b"".join(self._app(environ, lambda *_: None))
                    return _answer(start_response, "500 Internal Server Error", FAILURE)
            return list(self._app(environ, start_response))


class _Connection(WSGIRequestHandler):
    """Answers request after request and says nothing. werkzeug's own handler ends each connection after one, and waits
    for that: a third of what a request costs.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def run_wsgi(self) -> None:
        """Reads the whole request, as the next one follows it, and answers with a length."""
        environ = self.make_environ()
        length = int(environ.get("CONTENT_LENGTH") or 0)
        given = environ["wsgi.input"]
        environ["wsgi.input"] = io.BytesIO(given.read() if "wsgi.input_terminated" in environ else given.read(length))
        started: list[tuple[str, list[tuple[str, str]]]] = []
        body = b"".join(self.server.app(environ, lambda status, headers, _=None: started.append((status, headers))))
        status, headers = started[-1]
        code, _, reason = status.partition(" ")
        self.send_response(int(code), reason)
        for name, value in headers:
            self.send_header(name, value)
        if code not in ("204", "304") and "content-length" not in {name.lower() for name, _ in headers}:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log(self, type: str, message: str, *args: Any) -> None:
        """Says nothing."""


def _answer(start_response: Callable[..., Any], status: str, body: bytes) -> list[bytes]:
    start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A running server with the bucket `bucket`."""
    server = S3Server()
    try:
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        server.stop()


class Server(Protocol):
    """Any server with the bucket `bucket`, here or in tests.contract.racing_servers."""

    @property
    def options(self) -> Mapping[str, str]:
        """What opens it with hudi_core.storage."""
        ...


def client_of(server: Server) -> Any:
    """A boto3 client of the server."""
    options = server.options
    return boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        region_name=options["region"],
    )


def upload(server: Server, table: Path, key: str, *, folders: bool = False) -> str:
    """Copies a table without Hadoop's side files to `key`; its address. With `folders` each folder gets an empty
    object, as s3a makes them.
    """
    client = client_of(server)
    for path in sorted(table.rglob("*")):
        name = f"{key}/{path.relative_to(table).as_posix()}"
        if path.is_file() and path.suffix != ".crc":
            client.put_object(Bucket=BUCKET, Key=name, Body=path.read_bytes())
        elif path.is_dir() and folders:
            client.put_object(Bucket=BUCKET, Key=f"{name}/", Body=b"")
    return f"s3://{BUCKET}/{key}"


def age(name: str, seconds: float) -> None:
    """What moto says of the time of an object lies so much further back."""
    (account,) = s3_backends
    s3_backends[account]["aws"].buckets[BUCKET].keys[name].last_modified -= timedelta(seconds=seconds)


def keys(server: Server, key: str, below: str = "") -> list[str]:
    """The names of all objects of the table at `key` that begin with `below`, markers of folders included."""
    pages = client_of(server).get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{key}/{below}")
    return sorted(item["Key"][len(key) + 1 :] for page in pages for item in page.get("Contents", []))


def download(server: Server, key: str, target: Path) -> Path:
    """The table at `key` as a folder, without markers of folders."""
    client = client_of(server)
    for name in keys(server, key):
        if not name.endswith("/"):
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(client.get_object(Bucket=BUCKET, Key=f"{key}/{name}")["Body"].read())
    return target


def rows(table: HudiTable, metadata: MetadataMode) -> pa.Table:
    """The table's snapshot."""
    result = table.read(metadata=metadata)
    return pa.Table.from_batches(list(result.batches), result.schema)
