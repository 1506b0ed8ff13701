"""The job zip: the same bytes from the same sources, complete, and importable with nothing else of ours around."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from hudi_core.errors import ConfigError
from hudi_submit import zip as job_zip
from tests.support.golden_data import GoldenCase


def tree(root: Path, seconds: int) -> Path:
    """A copy of the packages' shape with other modification times, created in another order, and with what must not be
    shipped.
    """
    for name, text in (
        ("hudi_core/model/b.py", "B = 2\n"),
        ("hudi_core/model/__init__.py", ""),
        ("hudi_core/__init__.py", ""),
        ("hudi_core/plan.avsc", "{}"),
        ("hudi_spark/__init__.py", ""),
    )[:: 1 if seconds % 2 else -1]:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (seconds, seconds))
    cache = root / "hudi_core" / "__pycache__"
    cache.mkdir()
    (cache / "x.cpython-311.pyc").write_bytes(os.urandom(8))
    (root / "hudi_core" / ".hidden").write_text(str(seconds))
    (root / "hudi_core" / "plan.avsc").chmod(0o600 if seconds % 2 else 0o664)
    return root


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folder whose packages are zipped; replace its one entry to build from another."""
    place: list[Path] = []
    monkeypatch.setattr(job_zip, "_package_root", lambda package: place[0] / package)
    return place


def test_same_content_gives_the_same_bytes(tmp_path: Path, sources: list[Path]) -> None:
    built = []
    for name, seconds in (("a", 1_000_000_001), ("b", 1_700_000_000)):
        sources[:] = [tree(tmp_path / name, seconds)]
        built.append(job_zip.build_zip())
    assert built[0] == built[1]


def test_other_content_gives_another_name(tmp_path: Path, sources: list[Path]) -> None:
    sources[:] = [tree(tmp_path / "a", 1)]
    first = job_zip.publish_zip(tmp_path / "cache")
    (tmp_path / "a" / "hudi_core" / "model" / "b.py").write_text("B = 3\n")
    assert job_zip.publish_zip(tmp_path / "cache").name != first.name


def test_entries_are_sorted_stored_and_dated_alike(published: Path) -> None:
    with zipfile.ZipFile(published) as archive:
        infos = archive.infolist()
    names = [info.filename for info in infos]
    assert names == sorted(names)
    assert {(info.date_time, info.compress_type, info.external_attr >> 16, info.create_system) for info in infos} == {
        ((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 0o100644, 3)
    }


def test_it_holds_every_source_and_data_file_and_our_modules_compiled(published: Path) -> None:
    with zipfile.ZipFile(published) as archive:
        names = set(archive.namelist())
    expected = set()
    for package in job_zip.PACKAGES:
        spec = find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations
        root = Path(spec.submodule_search_locations[0])
        expected |= {
            path.relative_to(root.parent).as_posix()
            for path in root.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
    assert expected <= names
    compiled = {f"{name}c" for name in expected if name.endswith(".py")}
    assert {name for name in names if not name.startswith("_vendor/")} == expected | compiled
    assert not [name for name in names - compiled if name.endswith((".pyc", ".so", ".pyd", ".c"))]


FROM_COMPILED = """
import sys
sys.path.insert(0, sys.argv[1])
import hudi_core.errors, hudi_core.codec
import zipimport
def refused(*_):
    raise AssertionError("a module is compiled again")
if sys.argv[2] == "refuse":
    zipimport._compile_source = refused
import hudi_core.model.names
try:
    hudi_core.model.names.parse_base_file("x")
except hudi_core.errors.FormatError:
    import traceback
    assert "raise" in traceback.format_exc(), traceback.format_exc()
print(len([1 for name in sys.modules if name.startswith("hudi_core")]) > 3)
"""


def test_modules_are_loaded_as_they_were_compiled(published: Path) -> None:
    """And a traceback shows the source."""
    assert run_isolated(FROM_COMPILED, published, Path("refuse"), site=True) == "True\n"


def test_another_python_takes_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.MAGIC_NUMBER", b"\x00\x00\r\n")
    other = job_zip.publish_zip(tmp_path)
    assert run_isolated(FROM_COMPILED, other, Path("allow"), site=True) == "True\n"
    with pytest.raises(AssertionError, match="compiled again"):
        run_isolated(FROM_COMPILED, other, Path("refuse"), site=True)


def test_a_process_with_other_objects_compiles_the_same_bytes(published: Path) -> None:
    """Strings that another module has interned, constants that are shared."""
    code = "import hashlib, hudi_submit.zip; print(hashlib.sha256(hudi_submit.zip.build_zip()).hexdigest())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hashlib.sha256(published.read_bytes()).hexdigest()


def test_other_wheels_come_in_pure_python_with_their_licences(published: Path) -> None:
    with zipfile.ZipFile(published) as archive:
        names = archive.namelist()
        for wheel in job_zip.VENDORED:
            licences = [name for name in names if name.startswith(f"_vendor/licences/{wheel}-")]
            assert b"MIT License" in b"".join(archive.read(name) for name in licences), wheel
    assert {"_vendor/sqlglot/__init__.py", "_vendor/sqlglot/dialects/trino.py"} <= set(names)
    assert {"_vendor/fastavro/__init__.py", "_vendor/fastavro/_read_py.py", "_vendor/fastavro/_write_py.py"} <= set(
        names
    )


def test_a_file_of_an_unknown_kind_is_refused_by_name(tmp_path: Path, sources: list[Path]) -> None:
    sources[:] = [tree(tmp_path / "a", 1)]
    (tmp_path / "a" / "hudi_core" / "fast.so").write_bytes(b"\x7fELF")
    with pytest.raises(ConfigError, match="no rule for this file") as caught:
        job_zip.build_zip()
    assert str(caught.value.path).endswith("hudi_core/fast.so")


def test_a_missing_package_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_zip, "PACKAGES", ("hudi_core_that_is_not_there",))
    with pytest.raises(ConfigError, match="hudi_core_that_is_not_there"):
        job_zip.build_zip()


def test_the_cache_is_used_and_a_damaged_copy_replaced(tmp_path: Path, sources: list[Path]) -> None:
    sources[:] = [tree(tmp_path / "sources", 1)]
    cache = tmp_path / "cache"
    first = job_zip.publish_zip(cache)
    stamp = first.stat().st_mtime_ns
    assert job_zip.publish_zip(cache) == first
    assert first.stat().st_mtime_ns == stamp
    content = first.read_bytes()
    for damaged in (content[:100], content[:5000] + b"?" + content[5001:], b"", content[:-30]):
        first.write_bytes(damaged)
        assert job_zip.publish_zip(cache).read_bytes() == content
    assert [path.name for path in cache.iterdir()] == [first.name]


def test_the_cache_is_below_xdg_cache_home(
    tmp_path: Path, sources: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources[:] = [tree(tmp_path / "sources", 1)]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert job_zip.publish_zip().parent == tmp_path / "airflow-hudi" / "jobs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert job_zip.default_cache_dir() == tmp_path / "home" / ".cache" / "airflow-hudi" / "jobs"


def test_a_cache_that_cannot_be_written_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match="cannot store the job zip") as caught:
        job_zip.publish_zip(tmp_path / "file")
    assert "XDG_CACHE_HOME" in str(caught.value.remedy)


def test_the_module_runs_as_a_command(tmp_path: Path, sources: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    sources[:] = [tree(tmp_path / "sources", 1)]
    target = tmp_path / "build" / "jobs.zip"
    assert job_zip.main([str(target)]) == 0
    assert target.read_bytes() == job_zip.build_zip()
    assert "sha256" in capsys.readouterr().out
    assert job_zip.main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_entry_file_is_found() -> None:
    entry = job_zip.entry_file()
    assert entry.name == "main.py"
    assert "hudi_spark" in entry.read_text()


# What an executor must have besides the standard library and the zip.
EXECUTOR_WHEELS = ("numpy", "numpy.libs", "pyarrow")

ON_AN_EXECUTOR = """
import sys
job_zip, wheels, plan = sys.argv[1:]
sys.path[:0] = [job_zip, wheels]
from hudi_core.codec.avro.datum import IS_PURE
assert IS_PURE, "a compiled fastavro was found"
from hudi_core.codec.avro.container import read_container
schema, records = read_container(open(plan, "rb").read(), path=plan)
import fastavro
assert fastavro.__file__.startswith(job_zip), fastavro.__file__
from hudi_core.services.compaction.merge_slice import compact_operation
from hudi_core.codec.gzip import GzipLibrary, chosen_library
assert chosen_library(GzipLibrary.AUTO) is GzipLibrary.PYARROW
import io, pyarrow
from hudi_core.codec.parquet.file import ParquetBaseFile
from hudi_core.codec.parquet.writer import BaseFileWriter
rows, out = pyarrow.table({"a": ["x", "y"] * 500}), io.BytesIO()
writer = BaseFileWriter(out, rows.schema, path="written")
writer.write(rows)
writer.close({})
read = ParquetBaseFile(out, "read")
assert (read.compression, pyarrow.Table.from_batches(read.batches())) == ("GZIP", rows)
for name, module in list(sys.modules.items()):
    if name.split(".")[0] in ("hudi_core", "hudi_health", "hudi_spark"):
        assert module.__spec__.origin.startswith(job_zip), module
print(schema["name"], len(records[0]["operations"]))
"""

ON_A_DRIVER_WITHOUT_WHEELS = """
import sys
job_zip, wheels, table = sys.argv[1:]
sys.path[:0] = [job_zip, wheels]
from hudi_core.expr.sql import parse_predicate
from hudi_core.expr.tree import DIALECTS
import sqlglot
assert sqlglot.__file__.startswith(job_zip), sqlglot.__file__
assert len({parse_predicate("qty > 10 AND lower(id) LIKE 'a%'", dialect) for dialect in DIALECTS}) == 1
from hudi_core.table import HudiTable
plan = HudiTable.open(table).plan(where="id = 'k00003' OR id IN ('k00004', 'nobody')", columns=["id"])
print(sorted(row for batch in plan.batches() for row in batch.column(0).to_pylist()))
"""

EVERY_MODULE = """
import importlib, sys, zipfile
job_zip = sys.argv[1]
sys.path.insert(0, job_zip)
kept = (".zip", "site-packages", "lib-dynload")
sys.path[:] = [entry for entry in sys.path if entry.endswith(kept) or "/lib/python" in entry]
for name in zipfile.ZipFile(job_zip).namelist():
    if name.startswith("hudi_") and name.endswith(".py"):
        module = importlib.import_module(name[:-3].replace("/", ".").removesuffix(".__init__"))
        assert module.__spec__.origin.startswith(job_zip), module
from importlib.resources import files
from hudi_core.timeline.actions.content import load_schema
for name in zipfile.ZipFile(job_zip).namelist():
    if name.endswith((".avsc", ".json")):
        package, _, file = name.rpartition("/")
        assert (files("hudi_core") / name.removeprefix("hudi_core/")).read_bytes(), name
print("imported")
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The zip as a process makes it that has loaded our modules, and has names of theirs interned."""
    importlib.import_module("hudi_core.table")
    assert [sys.intern(word) for word in ("a b", "commit time")]
    return job_zip.publish_zip(tmp_path_factory.mktemp("cache"))


def run_isolated(code: str, *arguments: Path, site: bool) -> str:
    """Runs `code` in a Python that ignores the environment and this folder, and without `site` has no site-packages
    either.
    """
    flags = ["-I"] if site else ["-I", "-S"]
    done = subprocess.run(
        [sys.executable, *flags, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=arguments[0].parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_executor_needs_the_zip_and_few_wheels(
    published: Path, tmp_path: Path, golden: Callable[[str, str], GoldenCase]
) -> None:
    """Without site-packages: no compiled fastavro, no polars, no fsspec, no isal, nothing of a checkout. So it is, too,
    where a wheel is not built for the processor.
    """
    wheels = few_wheels(tmp_path)
    (plan,) = (golden("6", "compaction_inflight").table / ".hoodie").glob("*.compaction.requested")
    assert run_isolated(ON_AN_EXECUTOR, published, wheels, plan, site=False).split()[0] == "HoodieCompactionPlan"


@pytest.mark.slow
def test_a_predicate_is_read_where_no_sqlglot_is_installed(
    published: Path, tmp_path: Path, golden: Callable[[str, str], GoldenCase]
) -> None:
    """As with spark-submit, whose driver has the zip and what Spark's Python brings."""
    table = golden("8", "mor_basic").table
    assert (
        run_isolated(ON_A_DRIVER_WITHOUT_WHEELS, published, few_wheels(tmp_path), table, site=False)
        == "['k00003', 'k00004']\n"
    )


def few_wheels(folder: Path) -> Path:
    """A folder with nothing but the wheels that an executor must have."""
    wheels = folder / "wheels"
    wheels.mkdir()
    for name in EXECUTOR_WHEELS:
        for place in (Path(entry) for entry in sys.path if (Path(entry) / name).is_dir()):
            (wheels / name).symlink_to(place / name)
            break
    return wheels


@pytest.mark.slow
def test_every_module_and_data_file_loads_from_the_zip(published: Path) -> None:
    assert run_isolated(EVERY_MODULE, published, site=True) == "imported\n"
