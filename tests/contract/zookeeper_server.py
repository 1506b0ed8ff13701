"""A ZooKeeper server on loopback for tests: 3.9 from Maven Central, on the libraries that pyspark ships."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

from hudi_core.request.java import find_java
from tests.interop.bundle import Jar, fetched

GROUP = "org.apache.zookeeper"
JARS = (
    Jar(GROUP, "zookeeper", "3.9.3", "ad6570105768d18382a762325b4460368b7089a5a77c053e682b17942e0e72b5"),
    Jar(GROUP, "zookeeper-jute", "3.9.3", "be72e2c9099413a9878ce830b65bb22e0be755dc2a22b290550ab9e03b5b4cfa"),
)
LIBRARIES = (
    "netty-*",
    "slf4j-api-*",
    "snappy-java-*",
    "metrics-core-*",
    "commons-cli-*",
    "commons-io-*",
    "audience-annotations-*",
)
"""What ZooKeeper needs besides; its own pom leaves three of them as provided."""
START_SECONDS = 60
TICK_MS = 100
"""A session lives between 2 and 20 ticks: short enough to see one expire."""


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def zookeeper_server() -> Iterator[str]:
    """A running server; the value is its `host:port`."""
    with zookeeper_process() as (address, _):
        yield address


@contextmanager
def zookeeper_process() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A running server's `host:port` and its process."""
    libraries = Path(pyspark.__file__).parent / "jars"
    classpath = [str(fetched(jar)) for jar in JARS] + [
        str(path) for pattern in LIBRARIES for path in sorted(libraries.glob(pattern))
    ]
    with tempfile.TemporaryDirectory(prefix="zookeeper-") as folder:
        port = free_port()
        settings = {
            "tickTime": TICK_MS,
            "minSessionTimeout": 2 * TICK_MS,
            "maxSessionTimeout": 60_000,
            "dataDir": f"{folder}/data",
            "clientPort": port,
            "clientPortAddress": "127.0.0.1",
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
        }
        config = Path(folder) / "zoo.cfg"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = os.path.join(find_java(), "bin", "java")
        flags = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.forceSync=no"]
        command = [
            java,
            *flags,
            "-cp",
            os.pathsep.join(classpath),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            str(config),
        ]
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait(f"127.0.0.1:{port}", process, log)
            yield f"127.0.0.1:{port}", process
        finally:
            process.kill()  # one that a failed test has left stopped would not hear of an end
            process.wait()


def _wait(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        client = KazooClient(hosts=address, timeout=10)
        try:
            client.start(timeout=2)
            return
        except KazooTimeoutError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"ZooKeeper does not run:\n{log.read_text()[-4000:]}") from None
        finally:
            client.stop()
            client.close()
