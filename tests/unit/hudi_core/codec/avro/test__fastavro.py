"""The pure-Python fallback, in a process of its own that cannot see the installed fastavro."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import hudi_core.codec.avro.container as container

SCRIPT = """
import sys
kept = [entry for entry in sys.path if "site-packages" not in entry and not entry.endswith("spark_jobs")]
sys.path = [sys.argv[1]] + kept
names = [type(finder).__module__ + getattr(finder, "__name__", "") for finder in sys.meta_path]
sys.meta_path = [finder for finder, name in zip(sys.meta_path, names) if "editable" not in name]
from hudi_core.codec.avro import _fastavro
from hudi_core.codec.avro.container import read_container, write_container
import fastavro
assert _fastavro.IS_PURE and "_vendor" in fastavro.__file__, fastavro.__file__
fields = [{"name": "a", "type": ["null", "long"]}, {"name": "m", "type": {"type": "map", "values": "string"}}]
schema = {"type": "record", "name": "r", "fields": fields}
records = [{"a": 1 << 40, "m": {"k": "zü"}}, {"a": None, "m": {}}]
assert read_container(write_container(schema, records), path="x") == (schema, records)
try:
    read_container(write_container(schema, records)[:-20], path="x")
except Exception as error:
    print(type(error).__name__)
"""


def test_a_zip_brings_its_own_fastavro(tmp_path: Path) -> None:
    core = Path(container.__file__).parents[2]
    spec = find_spec("fastavro")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    wheel = Path(spec.submodule_search_locations[0])
    archive = tmp_path / "job.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in core.rglob("*.py"):
            zipped.write(path, Path("hudi_core") / path.relative_to(core))
        for path in wheel.rglob("*.py"):
            zipped.write(path, Path("_vendor/fastavro") / path.relative_to(wheel))
    done = subprocess.run(
        [sys.executable, "-S", "-c", SCRIPT, str(archive)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={},
    )
    assert (done.returncode, done.stdout.strip()) == (0, "CorruptFileError"), done.stderr
