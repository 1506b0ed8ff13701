"""The job zip as a wheel, for a service that installs libraries on a cluster and knows no `--py-files`: Databricks.

It has no requirements: what the job needs beside it is on the cluster, or is installed as a library of its own.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from typing import Final

from hudi_core import VERSION

PROJECT: Final = "hudi_jobs"
"""The wheel's name, which is not that of this package: on the cluster no Airflow is installed."""
_DIGITS = 12
_FILE_MODE = 0o100644 << 16
_METADATA = """Metadata-Version: 2.1
Name: {project}
Version: {version}
Summary: The Spark jobs of airflow-hudi
License: Apache-2.0
"""
_WHEEL = """Wheel-Version: 1.0
Generator: airflow-hudi
Root-Is-Purelib: true
Tag: py3-none-any
"""


def build_wheel(job_zip: bytes) -> tuple[str, bytes]:
    """The name and the bytes of the wheel of a job zip (airflow_hudi.jobs.zip), but for the modules that are compiled
    for one release of Python.

    The version ends in a number by content: an installer that finds an installed version leaves it as it is.
    """
    version = f"{VERSION}.post{int(hashlib.sha256(job_zip).hexdigest()[:_DIGITS], 16)}"
    info = f"{PROJECT}-{version}.dist-info"
    with zipfile.ZipFile(io.BytesIO(job_zip)) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if not name.endswith(".pyc")}
    contents[f"{info}/METADATA"] = _METADATA.format(project=PROJECT, version=version).encode()
    contents[f"{info}/WHEEL"] = _WHEEL.encode()
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_hash(data)},{len(data)}" for name, data in contents.items()]
    contents[record] = "".join(f"{line}\n" for line in (*lines, f"{record},,")).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as wheel:
        for name, data in contents.items():
            # Made by name alone, an entry has the first date that a zip can hold.
            entry = zipfile.ZipInfo(name)
            entry.external_attr = _FILE_MODE
            wheel.writestr(entry, data)
    return f"{PROJECT}-{version}-py3-none-any.whl", buffer.getvalue()


def _hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
