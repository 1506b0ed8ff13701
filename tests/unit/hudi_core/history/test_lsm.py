"""The archive of layout 2: which files count, what is opened, and what is damage."""

from __future__ import annotations

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_core.errors import CorruptFileError, FormatError, SizeLimitError, StorageError
from hudi_core.history.lsm import LsmHistory
from hudi_core.history.manifest import parse_manifest, read_snapshot
from hudi_core.model.size_limits import Limit
from hudi_core.timeline.actions.commit import CommitMetadata, encode_commit_avro
from hudi_core.timeline.instant import Instant, State
from tests.support.fault_storage import FaultPlan, FaultStorage
from tests.support.memory_storage import MemoryStorage

FOLDER = ".hoodie/timeline/history"
SCHEMA = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
    ]
)


def _commit(name: str) -> bytes:
    return encode_commit_avro(CommitMetadata(operation_type="UPSERT", extra_metadata={"name": name}))


def _write(storage: MemoryStorage, name: str, rows: list[tuple[str, str, str]]) -> None:
    columns = [list(values) for values in zip(*rows, strict=True)]
    out = io.BytesIO()
    pq.write_table(pa.table([*columns, [_commit(row[0]) for row in rows], [None] * len(rows)], schema=SCHEMA), out)
    storage.write(f"{FOLDER}/{name}", out.getvalue())


def _manifest(storage: MemoryStorage, version: int, *names: str) -> None:
    text = json.dumps({"files": [{"fileName": name, "fileLen": 1} for name in names]})
    storage.write(f"{FOLDER}/manifest_{version}", text.encode())
    storage.write(f"{FOLDER}/_version_", str(version).encode())


@pytest.fixture
def storage() -> MemoryStorage:
    storage = MemoryStorage()
    _write(storage, "10_12_1.parquet", [("10", "11", "commit"), ("12", "30", "deltacommit")])
    _write(storage, "20_21_0.parquet", [("20", "22", "clean"), ("21", "25", "replacecommit")])
    _write(storage, "01_01_0.parquet", [("01", "02", "commit")])
    _manifest(storage, 3, "20_21_0.parquet", "10_12_1.parquet")
    return storage


def _times(instants: list[Instant]) -> list[str]:
    return [instant.requested_time for instant in instants]


def test_the_latest_snapshot_counts(storage: MemoryStorage) -> None:
    history = LsmHistory(storage, FOLDER)
    assert _times(history.instants()) == ["10", "12", "20", "21"]
    assert history.instants()[1] == Instant("12", "deltacommit", State.COMPLETED, "30")
    assert history.completion_time("12") == "30"
    assert history.completion_time("01") is None
    metadata = history.commit("21")
    assert metadata is not None
    assert metadata.extra_metadata == {"name": "21"}
    assert history.commit("20") is None
    assert _times(history.completed_in("22", "25")) == ["21"]
    assert _times(history.completed_in(None, None)) == ["10", "20", "21", "12"]


@pytest.mark.parametrize("version", [b"", b"x", b"-1", b"99999999999999999999", None])
def test_an_unreadable_version_file_falls_back_to_the_largest_manifest(
    storage: MemoryStorage, version: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    storage.write(f"{FOLDER}/manifest_20", storage.read(f"{FOLDER}/manifest_3"))
    storage.write(f"{FOLDER}/manifest_4", b"{}")
    storage.write(f"{FOLDER}/manifest_21.tmp", b"{}")
    storage.delete(f"{FOLDER}/_version_")
    if version is not None:
        storage.write(f"{FOLDER}/_version_", version)
    assert len(LsmHistory(storage, FOLDER).instants()) == 4
    # Nothing is said of a version file that an archiver is just replacing.
    assert [record.levelname for record in caplog.records] == (["WARNING"] if version else [])


def test_only_files_of_the_range_are_opened(storage: MemoryStorage) -> None:
    storage.write(f"{FOLDER}/20_21_0.parquet", b"broken")
    history = LsmHistory(storage, FOLDER)
    assert _times(history.instants(up_to="15")) == ["10", "12"]
    assert history.completion_time("10") == "11"
    assert history.completion_time("15") is None
    assert history.commit("12") is not None
    with pytest.raises(CorruptFileError, match="20_21_0"):
        history.instants()
    with pytest.raises(CorruptFileError, match="20_21_0"):
        history.completion_time("20")


def test_lists_of_instants_read_no_content(storage: MemoryStorage) -> None:
    table = pq.read_table(io.BytesIO(storage.read(f"{FOLDER}/10_12_1.parquet"))).drop_columns(["metadata", "plan"])
    out = io.BytesIO()
    pq.write_table(table, out)
    storage.write(f"{FOLDER}/10_12_1.parquet", out.getvalue())
    history = LsmHistory(storage, FOLDER)
    assert len(history.instants()) == 4
    with pytest.raises(CorruptFileError, match="no binary column 'metadata'"):
        history.commit("10")


def test_an_instant_archived_twice_is_one(storage: MemoryStorage) -> None:
    _write(storage, "12_13_0.parquet", [("12", "30", "deltacommit"), ("13", "14", "commit")])
    _manifest(storage, 4, "10_12_1.parquet", "12_13_0.parquet")
    history = LsmHistory(storage, FOLDER)
    assert _times(history.instants()) == ["10", "12", "13"]
    assert [instant.requested_time for instant, _ in history.commits(history.instants())] == ["10", "12", "13"]


def test_whether_an_archive_is_empty_opens_none_of_its_files(storage: MemoryStorage) -> None:
    for file in read_snapshot(storage, FOLDER):
        storage.delete(file.path)
    assert not LsmHistory(storage, FOLDER).is_empty()


def test_nothing_archived_yet() -> None:
    assert read_snapshot(MemoryStorage(), FOLDER) == []


FOREIGN = [
    "../../x_1_0.parquet",
    "/1_2_0.parquet",
    "a/1_2_0.parquet",
    "1_2_0.parquet.crc",
    "2_1_0.parquet",
    "1_2.parquet",
    "1_2_x.parquet",
    "",
    "1",
]
BROKEN = [
    "",
    "[]",
    "{}",
    '{"files": {}}',
    '{"files": [1]}',
    '{"files": [{}]}',
    '{"files": [{"fileName": 7}]}',
    "\x00",
    "{" * 5000,
]


@pytest.mark.parametrize("name", FOREIGN)
def test_a_manifest_names_plain_files_of_the_archive_only(name: str) -> None:
    with pytest.raises(FormatError, match="manifest_1"):
        parse_manifest(json.dumps({"files": [{"fileName": name, "fileLen": 1}]}).encode(), FOLDER, path="manifest_1")


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_manifest(text: str) -> None:
    with pytest.raises(CorruptFileError, match="manifest_1"):
        parse_manifest(text.encode(), FOLDER, path="manifest_1")


def test_a_missing_or_oversized_manifest_is_damage(storage: MemoryStorage) -> None:
    storage.write(f"{FOLDER}/_version_", b"9")
    with pytest.raises(CorruptFileError, match="manifest_9"):
        LsmHistory(storage, FOLDER).instants()
    storage.write(f"{FOLDER}/manifest_9", b" " * (Limit.MANIFEST.default + 1))
    with pytest.raises(SizeLimitError, match="manifest"):
        LsmHistory(storage, FOLDER).instants()


def test_a_file_that_the_manifest_names_is_never_just_absent(storage: MemoryStorage) -> None:
    storage.delete(f"{FOLDER}/20_21_0.parquet")
    with pytest.raises(CorruptFileError, match="not there") as caught:
        LsmHistory(storage, FOLDER).timeline()
    assert caught.value.path == f"{FOLDER}/20_21_0.parquet"


@pytest.mark.parametrize("kind", ["read_range", "list_files"])
def test_a_storage_error_is_an_error_and_not_an_empty_archive(storage: MemoryStorage, kind: str) -> None:
    class Refusing(FaultStorage):
        def read_range(self, path: str, span: object) -> bytes:
            if kind == "read_range":
                raise StorageError("no access", path=path)
            return super().read_range(path, span)  # type: ignore[arg-type]

        def list_files(self, folder: str) -> list:  # type: ignore[type-arg]
            raise StorageError("no access", path=folder)

    storage.delete(f"{FOLDER}/_version_")
    with pytest.raises(StorageError, match="no access"):
        LsmHistory(Refusing(storage, FaultPlan()), FOLDER).instants()


def test_rows_without_times_are_damage(storage: MemoryStorage) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table([["10"], [None], ["commit"], [b""], [None]], schema=SCHEMA), out)
    storage.write(f"{FOLDER}/10_12_1.parquet", out.getvalue())
    with pytest.raises(CorruptFileError, match="no completionTime"):
        LsmHistory(storage, FOLDER).instants()


def test_empty_content_is_empty_metadata(storage: MemoryStorage) -> None:
    out = io.BytesIO()
    pq.write_table(
        pa.table([["10", "12"], ["11", "30"], ["commit", "deltacommit"], [None, b""], [None, b""]], schema=SCHEMA), out
    )
    storage.write(f"{FOLDER}/10_12_1.parquet", out.getvalue())
    history = LsmHistory(storage, FOLDER)
    assert history.commit("10") == CommitMetadata() == history.commit("12")
    assert history.content(history.instants()[0]) == {} == history.plan(history.instants()[1])
