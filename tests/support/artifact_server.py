"""A server of the Spark Connect protocol that takes artifacts and runs nothing: what a client gives to the executors
can be read from it, without a JVM. tests/contract has real servers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from pyspark.sql.connect.proto import base_pb2, base_pb2_grpc


class ArtifactServer(base_pb2_grpc.SparkConnectServiceServicer):
    """`artifacts` by their names; with `refuses` it takes none, and says so."""

    def __init__(self, refuses: str) -> None:
        self.artifacts: dict[str, bytes] = {}
        self.address = ""
        self._refuses = refuses

    def AddArtifacts(self, request_iterator: Iterator[Any], context: grpc.ServicerContext) -> Any:
        """Keeps whole artifacts, and those that come in chunks; refuses one whose checksum is wrong."""
        if self._refuses:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, self._refuses)
        name = ""
        for request in request_iterator:
            match request.WhichOneof("payload"):
                case "begin_chunk":
                    name = request.begin_chunk.name
                    self._add(name, request.begin_chunk.initial_chunk, context)
                case "chunk":
                    self._add(name, request.chunk, context)
                case "batch":
                    for artifact in request.batch.artifacts:
                        self._add(artifact.name, artifact.data, context)
        return base_pb2.AddArtifactsResponse()

    def Config(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Takes every property."""
        return base_pb2.ConfigResponse(session_id=request.session_id)

    def _add(self, name: str, chunk: Any, context: grpc.ServicerContext) -> None:
        if zlib.crc32(chunk.data) != chunk.crc:
            context.abort(grpc.StatusCode.DATA_LOSS, f"the checksum of {name} is wrong")
        self.artifacts[name] = self.artifacts.get(name, b"") + chunk.data


@contextmanager
def artifact_server(refuses: str = "") -> Iterator[ArtifactServer]:
    """Serves on a free port of this machine."""
    found = ArtifactServer(refuses)
    server = grpc.server(ThreadPoolExecutor(2))
    base_pb2_grpc.add_SparkConnectServiceServicer_to_server(found, server)
    found.address = f"sc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield found
    finally:
        server.stop(None).wait()
