"""An S3 server on loopback for tests: moto behind one lock (its conditional PUT is check-then-write), with faults on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

CREDENTIALS = {"key": "testing", "secret": "testing", "region": "us-east-1"}
CONFLICT = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ConditionalRequestConflict</Code>'
    b"<Message>A conflicting conditional operation is under way</Message></Error>"
)
FAILURE = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code><Message>try again</Message></Error>'


class S3Server:
    """`options` opens it with hudi_core.storage. The next conditional PUTs lose their answers or meet a conflict as often as told."""

    def __init__(self) -> None:
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        self._server: Any = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.port}"
        self.options = {"endpoint_url": self.url, **CREDENTIALS}
        self.lost_answers = 0
        self.conflicts = 0
        self.conditional_puts = 0
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def client(self) -> Any:
        """A boto3 client of the server."""
        return boto3.client(
            "s3", endpoint_url=self.url, aws_access_key_id="testing", aws_secret_access_key="testing", region_name=CREDENTIALS["region"]
        )

    def stop(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        conditional = environ["REQUEST_METHOD"] == "PUT" and ("HTTP_IF_NONE_MATCH" in environ or "HTTP_IF_MATCH" in environ)
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


class _Quiet(WSGIRequestHandler):
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
        server.client().create_bucket(Bucket="bucket")
        yield server
    finally:
        server.stop()
