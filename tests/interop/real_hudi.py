"""Real Apache Hudi as a judge: a worker process per version, asked over pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudi_core.request.java import find_java
from tests.interop.bundle import bundle_jar
from tests.support.rows import read_parquet


class RealHudiError(Exception):
    """Real Hudi raised; the message is its own."""


class RealHudi:
    """One version of Apache Hudi on Spark 3.5. Every verb of tests/interop/worker.py is a method call away by `ask`."""

    def __init__(
        self, version: str, *, jars: Sequence[Path] = (), conf: Mapping[str, str] | None = None, niceness: int = 0
    ) -> None:
        """With `jars` beside the bundle's and `conf` of Spark; `niceness` of its processes."""
        self.version = version
        session = {"jars": [str(path) for path in jars], "conf": dict(conf or {})}
        self._log = tempfile.NamedTemporaryFile("w+b", suffix=f"-hudi-{version}.log", delete=False)  # noqa: SIM115 - lives as long as the worker
        environment = {
            **os.environ,
            "JAVA_HOME": find_java(),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "TZ": "UTC",
            "REAL_HUDI_SESSION": json.dumps(session),
        }
        environment.pop("SPARK_HOME", None)
        worker = Path(__file__).with_name("worker.py")
        self._process = subprocess.Popen(
            ["nice", "-n", str(niceness), sys.executable, str(worker), str(bundle_jar(version)), version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            text=True,
        )

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Sends one request and waits for its answer; raises RealHudiError with Hudi's own message."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"verb": verb, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RealHudiError(f"the worker died: {Path(self._log.name).read_text(errors='replace')[-4000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise RealHudiError(answer["error"])
        return answer["result"]

    def snapshot(self, table: Path | str, *, metadata: bool, query: str = "snapshot") -> pa.Table:
        """What real Hudi reads, `_hoodie_*` columns included."""
        options = {} if query == "snapshot" else {"hoodie.datasource.query.type": query}
        with tempfile.TemporaryDirectory() as scratch:
            output = f"{scratch}/answer.parquet"
            self.ask("read", base=str(table), output=output, metadata=metadata, options=options)
            return read_parquet(output)

    def close(self) -> None:
        """Ends the worker and its JVM."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()
        os.unlink(self._log.name)
