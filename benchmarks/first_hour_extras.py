"""The extras of the storages: how long pip and uv need to resolve each, and whether Airflow then opens the storage."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXTRAS = {
    "amazon": ("apache-airflow-providers-amazon", "s3fs", "aiobotocore", "boto3"),
    "google": ("apache-airflow-providers-google", "gcsfs"),
    "azure": ("apache-airflow-providers-microsoft-azure", "adlfs"),
}
"""By extra, the packages whose chosen versions are stored."""
LIMIT_SECONDS = 60.0
BUCKET = "warehouse"
AZURE = "DefaultEndpointsProtocol=https;AccountName=account;AccountKey=a2V5;EndpointSuffix=core.windows.net"
STORES: dict[str, tuple[str, dict[str, Any]]] = {
    "amazon": ("s3", {"conn_type": "aws", "login": "test", "password": "test"}),
    "google": ("gs", {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True}}),
    "azure": ("abfs", {"conn_type": "wasb", "extra": {"connection_string": AZURE}}),
}
"""By extra, a scheme and an Airflow connection that needs no account. The endpoint of S3 is added."""

_OPEN = """
import logging
from airflow_hudi.hooks import HudiHook
from hudi_core.config.engine_config import Mode
from hudi_core.errors import ConfigError
from hudi_core.verbs.run import RunRequest
from hudi_submit.local_process import LocalProcess, ProcessSettings
hook = HudiHook("hudi_store")
try:
    storage = hook.storage("orders")
except ConfigError as error:
    print("FOUND", error.remedy)
else:
    read, looked = "", ""
    if hook.base_path.startswith("s3:"):
        read = hook.timeline("orders").config.name
        settings = ProcessSettings({}, 20, lambda: hook.credentials("orders"))
        process = LocalProcess(RunRequest(storage.uri, "compaction"), Mode.LOOK, settings, logging.getLogger("look"))
        process.run()
        looked = min(process.result.to_json())
    print("FOUND", type(storage._fs).__module__.split(".")[0], read, looked)
"""
"""With S3 the process beside a task gets the credentials of the connection, too; its result says what it found."""

Run = Callable[[str], str]
"""Runs commands in the newcomer's shell and returns their output; raises RuntimeError when one fails."""


@dataclass(frozen=True, slots=True)
class Installer:
    """A program that resolves without installing; `limited` to a minute or only measured."""

    name: str
    command: str
    chosen: Callable[[Path], dict[str, str]]
    limited: bool


def measure_extras(run: Run, scratch: Path, constraints: Path) -> list[dict[str, Any]]:
    """The seconds of each installer to resolve each extra into an empty environment, with cold caches.

    `run` has `dist` with the wheels in its folder, and uv. Beside uv there are the newest pip and the one that Python
    brings, which downloads each wheel in order to resolve. Raises RuntimeError when the first two take over a minute.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    report = scratch / "report.json"
    found = []
    for installer in _installers(run, scratch, report):
        for extra, packages in EXTRAS.items():
            for name, file in (("none", None), ("of this project", constraints / f"constraints-{python}.txt")):
                given = "" if file is None else f"--constraint {file}"
                started = time.monotonic()
                run(installer.command.format(f"--find-links dist {given} 'airflow-hudi[{extra}]'"))
                seconds = round(time.monotonic() - started, 1)
                print(f"[first hour] {extra}, {installer.name}, constraints {name}: {seconds} s", file=sys.stderr)
                if installer.limited and seconds > LIMIT_SECONDS:
                    raise RuntimeError(f"{installer.name} resolves airflow-hudi[{extra}] in {seconds} s")
                chosen = installer.chosen(report)
                found.append(
                    {
                        "extra": extra,
                        "installer": installer.name,
                        "constraints": name,
                        "seconds": seconds,
                        "packages": len(chosen),
                        "chosen": {package: chosen[package] for package in packages},
                    }
                )
    return found


def _installers(run: Run, scratch: Path, report: Path) -> list[Installer]:
    """uv, the newest pip and Python's own, each with an empty environment."""
    empty, newest = scratch / "empty", scratch / "newest"
    run(f"python3 -m venv {empty}\npython3 -m venv {newest}\n{newest}/bin/pip install --quiet --upgrade pip\n")
    uv = run("uv --version\n").split()[1]
    found = [Installer(f"uv {uv}", f"uv pip install --dry-run --python {empty} {{}} 2>{report}\n", _of_uv, True)]
    for home, limited in ((newest, True), (empty, False)):
        version = run(f"{home}/bin/pip --version\n").split()[1]
        command = f"{home}/bin/pip install --dry-run --quiet --report {report} {{}}\n"
        found.append(Installer(f"pip {version}", command, _of_pip, limited))
    return found


def open_extras(run: Run, warehouse: Path) -> dict[str, Any]:
    """What the hook says without each extra, and which library opens its storage with it, beside spark3.

    S3 is read for real, from a server on this machine; the others are opened without a request. Raises RuntimeError
    when the remedy does not name the extra, or the storage is not opened afterwards.
    """
    (table,) = [folder for folder in warehouse.iterdir() if (folder / ".hoodie").is_dir()]
    found = {}
    with _s3(table) as endpoint:
        for extra, (scheme, store) in STORES.items():
            connection = {**store, "extra": {"endpoint_url": endpoint}} if extra == "amazon" else store
            hudi = {"conn_type": "hudi", "host": f"{scheme}://{BUCKET}", "extra": {"storage_conn_id": "store"}}
            look = (
                f"export AIRFLOW_CONN_STORE='{json.dumps(connection)}' AIRFLOW_CONN_HUDI_STORE='{json.dumps(hudi)}'\n"
                f"python -c '{_OPEN}'\n"
            )
            without = _answer(run(look))
            run(f"uv pip install --find-links dist 'airflow-hudi[{extra}]'\n")
            opened = _answer(run(look))
            if f"airflow-hudi[{extra}]" not in without or opened.split()[0] != EXTRAS[extra][1]:
                raise RuntimeError(f"{extra}: without it {without!r}, with it {opened!r}")
            library, *read = opened.split()
            if extra == "amazon" and read[1:] not in (["instants"], ["submit"]):
                raise RuntimeError(f"the look beside a task found {read[1:]}")
            found[extra] = {"remedy_without": without, "library": library, "table_read": read[:1]}
    return found


class _s3:
    """An S3 server on this machine, with the table in its bucket."""

    def __init__(self, table: Path) -> None:
        from moto.server import ThreadedMotoServer

        self._table = table
        self._server = ThreadedMotoServer("127.0.0.1", 0)

    def __enter__(self) -> str:
        import boto3

        self._server.start()
        host, port = self._server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket=BUCKET)
        for file in self._table.rglob("*"):
            if file.is_file():
                client.upload_file(str(file), BUCKET, f"orders/{file.relative_to(self._table).as_posix()}")
        return endpoint

    def __exit__(self, *_: object) -> None:
        self._server.stop()


def _answer(output: str) -> str:
    (line,) = [line for line in output.splitlines() if line.startswith("FOUND ")]
    return line.removeprefix("FOUND ")


def _of_pip(report: Path) -> dict[str, str]:
    """The chosen versions in pip's report."""
    chosen = [item["metadata"] for item in json.loads(report.read_text())["install"]]
    return {item["name"].lower(): item["version"] for item in chosen}


def _of_uv(report: Path) -> dict[str, str]:
    """The chosen versions in the lines ` + name==version` of uv's plan."""
    lines = [line.strip().removeprefix("+ ") for line in report.read_text().splitlines() if "==" in line]
    return dict(line.split("==", 1) for line in lines)
