"""S3 servers with atomic conditional put, by name: the same races run on moto behind one lock (`make test`) and on
versitygw (`make soak`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tests.contract.s3_server import s3_server
from tests.contract.zookeeper_server import free_port

CHOICE = "AIRFLOW_HUDI_S3_SERVER"
"""Environment variable that names the server; moto without it."""
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
START_SECONDS = 30


@dataclass(frozen=True)
class RacingServer:
    """A running server with the bucket `bucket`; `options` opens it with hudi_core.storage."""

    kind: str
    url: str
    options: Mapping[str, str]


@contextmanager
def racing_server(kind: str | None = None) -> Iterator[RacingServer]:
    """The server of that name, or the one that the environment names."""
    chosen = kind or os.environ.get(CHOICE, "moto")
    if chosen == "moto":
        with s3_server() as server:
            yield RacingServer(chosen, server.url, server.options)
    elif chosen == "versitygw":
        with _versitygw() as running:
            yield running
    else:
        raise ValueError(f"{CHOICE} is {chosen!r}, neither moto nor versitygw")


def versitygw_binary() -> Path:
    """The server's binary in the cache; compiled from the Go module proxy once, which takes minutes."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "airflow-hudi" / "bin"
    binary = folder / "versitygw"
    if not binary.is_file():
        if shutil.which("go") is None:
            raise RuntimeError("versitygw is compiled by Go: install Go 1.24 or later")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            environment = {**os.environ, "GOBIN": scratch, "GOFLAGS": "-buildvcs=false"}
            subprocess.run(
                ["nice", "-n", "19", "go", "install", VERSITYGW],
                check=True,
                timeout=3600,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
            (Path(scratch) / "versitygw").replace(binary)
    return binary


@contextmanager
def _versitygw() -> Iterator[RacingServer]:
    binary = versitygw_binary()
    with tempfile.TemporaryDirectory(prefix="versitygw-") as folder:
        address = f"127.0.0.1:{free_port()}"
        options = {"endpoint_url": f"http://{address}", "key": "testing", "secret": "testing", "region": "us-east-1"}
        command = [
            str(binary),
            "--port",
            address,
            "--access",
            "testing",
            "--secret",
            "testing",
            "--quiet",
            "posix",
            folder,
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _create_bucket(options, process)
            yield RacingServer("versitygw", options["endpoint_url"], options)
        finally:
            process.terminate()
            process.wait()


def _create_bucket(options: Mapping[str, str], process: subprocess.Popen[bytes]) -> None:
    client: Any = boto3.client(
        "s3",
        endpoint_url=options["endpoint_url"],
        aws_access_key_id=options["key"],
        aws_secret_access_key=options["secret"],
        region_name=options["region"],
    )
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            client.create_bucket(Bucket="bucket")
            return
        except (BotoCoreError, ClientError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
