from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator

import pytest

from hudi_core.config import table_config
from hudi_core.config.table_config import BACKUP, PROPERTIES, TableConfig, table_checksum, timeline_zone
from hudi_core.config.versions import SUPPORTED
from hudi_core.errors import ConfigError, CorruptFileError, HudiError, UnsupportedError, UnsupportedVersionError
from hudi_core.storage.local import LocalStorage
from tests.support.golden_data import GoldenCase, golden_cases, golden_root
from tests.support.memory_storage import MemoryStorage

LAYOUTS = {version.number: version.layout for version in SUPPORTED}
FOLDERS = {"6": 6, "6-by-1.2.0": 6, "8": 8, "8-by-1.2.0": 8, "9": 9}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_config, "_PAUSE_SECONDS", 0.0)


def properties(**changes: str | None) -> bytes:
    found: dict[str, str | None] = {
        "hoodie.table.name": "t",
        "hoodie.database.name": "d",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": "6",
        "hoodie.timeline.layout.version": "1",
        "hoodie.table.checksum": str(table_checksum("d", "t")),
    }
    found |= {key.replace("__", "."): value for key, value in changes.items()}
    return "".join(f"{key}={value}\n" for key, value in found.items() if value is not None).encode()


def table(main: bytes | None, backup: bytes | None = None) -> MemoryStorage:
    storage = MemoryStorage()
    if main is not None:
        storage.write(PROPERTIES, main)
    if backup is not None:
        storage.write(BACKUP, backup)
    return storage


def golden_properties(folder: str) -> Iterator[tuple[str, bytes]]:
    for case in golden_cases(folder):
        with zipfile.ZipFile(golden_root() / folder / f"{case}.zip") as zipped:
            for name in zipped.namelist():
                if name.endswith("/" + PROPERTIES):
                    yield f"{case}:{name}", zipped.read(name)


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_the_properties_of_every_golden_table_parse(folder: str) -> None:
    version = FOLDERS[folder]
    seen = 0
    for name, data in golden_properties(folder):
        config = TableConfig.parse(data)
        assert (config.version, config.layout_version) == (version, LAYOUTS[version]), name
        assert config.table_type in ("MERGE_ON_READ", "COPY_ON_WRITE")
        assert config.record_key_fields
        without_ordering = name.count(".hoodie") > 1 or "no_ordering" in name
        assert config.ordering_fields == (() if without_ordering else ("ts",)), name
        assert (config.base_file_format == "HFILE") == (name.count(".hoodie") > 1)
        assert int(config.raw["hoodie.table.checksum"]) == table_checksum(config.database, config.name)
        seen += 1
    assert seen >= 10


def test_a_golden_table_loads_with_its_metadata_table(golden: Callable[[str, str], GoldenCase]) -> None:
    storage = LocalStorage(golden("6", "mor_compaction_requested").table)
    config = TableConfig.load(storage)
    assert config.path == PROPERTIES
    assert config.name == "mor_compaction_requested"
    assert config.is_merge_on_read
    assert config.partition_fields == ("dt",)
    assert config.payload_class == "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
    assert config.metadata_partitions == {"files"}
    assert config.features.log_name_has_delta_commit is False
    metadata = TableConfig.load(storage, base=".hoodie/metadata")
    assert metadata.path == ".hoodie/metadata/.hoodie/hoodie.properties"
    assert metadata.base_file_format == "HFILE"
    assert metadata.populate_meta_fields is False


@pytest.mark.parametrize("folder", ["8", "9"])
def test_golden_tables_of_layout_2_load(golden: Callable[[str, str], GoldenCase], folder: str) -> None:
    config = TableConfig.load(LocalStorage(golden(folder, "mor_basic").table))
    assert (config.version, config.layout_version) == (int(folder), 2)
    assert (config.timeline_folder, config.history_folder) == (".hoodie/timeline", ".hoodie/timeline/history")
    assert config.ordering_fields == ("ts",)


def test_the_folders_of_the_timeline() -> None:
    config = TableConfig.load(table(properties()))
    assert (config.timeline_folder, config.history_folder) == (".hoodie", ".hoodie/archived")
    assert TableConfig.parse(properties(hoodie__archivelog__folder="")).history_folder == ".hoodie"
    renamed = {"hoodie.timeline.path": "tl", "hoodie.timeline.history.path": "old"}
    config = TableConfig.parse(properties(hoodie__table__version="8", hoodie__timeline__layout__version="2", **renamed))
    assert (config.timeline_folder, config.history_folder) == (".hoodie/tl", ".hoodie/tl/old")


@pytest.mark.parametrize("key", ["hoodie.timeline.path", "hoodie.timeline.history.path"])
@pytest.mark.parametrize("folder", ["../../etc", "/etc", "a/b", "..", "."])
def test_a_timeline_folder_outside_the_table_is_refused(key: str, folder: str) -> None:
    data = properties(hoodie__table__version="8", hoodie__timeline__layout__version="2", **{key: folder})
    with pytest.raises(HudiError) as caught:
        TableConfig.load(table(data))
    assert caught.value.path == PROPERTIES


def test_lance_tables_are_refused_by_name() -> None:
    data = properties(
        hoodie__table__version="9", hoodie__timeline__layout__version="2", hoodie__table__base__file__format="LANCE"
    )
    with pytest.raises(UnsupportedError, match="LANCE") as caught:
        TableConfig.load(table(data, backup=properties()))
    _names_file_and_remedy(caught.value)
    assert TableConfig.parse(data).base_file_format == "LANCE"


@pytest.mark.parametrize(
    ("timezone", "options", "zone"),
    [
        ("UTC", {}, "UTC"),
        ("utc", {"airflow_hudi.timeline.zone": "Asia/Tokyo"}, "UTC"),
        ("LOCAL", {"airflow_hudi.timeline.zone": "Asia/Tokyo"}, "Asia/Tokyo"),
        ("LOCAL", {}, "LOCAL"),
    ],
)
def test_the_zone_of_local_instants_is_an_option(timezone: str, options: dict[str, str], zone: str) -> None:
    config = TableConfig.parse(properties(hoodie__table__timeline__timezone=timezone))
    assert timeline_zone(config, options) == zone


@pytest.mark.parametrize(
    ("version", "layout"),
    [("5", "1"), ("7", "2"), ("8", "1"), ("9", "1"), ("99", "2"), ("99", None), ("6", "2"), ("0", "0")],
)
def test_versions_and_layouts_that_are_not_supported_are_refused(version: str, layout: str | None) -> None:
    data = properties(
        hoodie__table__version=version,
        hoodie__timeline__layout__version=layout,
        hoodie__table__base__file__format="NEW",
    )
    with pytest.raises(UnsupportedVersionError) as caught:
        TableConfig.load(table(data, backup=properties()))
    _names_file_and_remedy(caught.value)
    assert f"table version {version}" in str(caught.value)
    assert caught.value.exit_code == 2


def _names_file_and_remedy(error: HudiError) -> None:
    assert error.path == PROPERTIES
    assert PROPERTIES in str(error)
    assert error.remedy


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"#Properties saved on x\n",
        properties(hoodie__table__checksum="1"),
        properties(hoodie__table__name="renamed"),
        properties(hoodie__database__name=None),
        properties(hoodie__table__name=None),
        properties(hoodie__table__type=None),
        properties(hoodie__table__version=None),
        b"\x00\x01\x02",
    ],
)
def test_a_file_that_is_not_whole_is_corrupt_unless_its_backup_is_good(data: bytes) -> None:
    with pytest.raises(CorruptFileError) as caught:
        TableConfig.load(table(data))
    _names_file_and_remedy(caught.value)
    with pytest.raises(CorruptFileError):
        TableConfig.load(table(data, backup=data))
    assert TableConfig.load(table(data, backup=properties())).name == "t"
    assert TableConfig.load(table(properties(), backup=data)).name == "t"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hoodie.table.version", "six"),
        ("hoodie.table.version", "-6"),
        ("hoodie.table.checksum", "x"),
        ("hoodie.table.type", "MERGE"),
        ("hoodie.populate.meta.fields", "maybe"),
        ("hoodie.table.timeline.timezone", "MARS"),
        ("hoodie.table.base.file.format", "CSV"),
    ],
)
def test_a_value_that_means_nothing_is_refused_by_key(key: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TableConfig.load(table(properties(**{key: value})))
    assert key in str(caught.value)
    _names_file_and_remedy(caught.value)


@pytest.mark.parametrize("folder", ["../../etc", "/etc", "a/b", ".."])
def test_an_archive_folder_outside_the_table_is_refused(folder: str) -> None:
    with pytest.raises(HudiError) as caught:
        TableConfig.load(table(properties(hoodie__archivelog__folder=folder)))
    assert caught.value.path == PROPERTIES


def test_without_a_file_there_is_no_table() -> None:
    with pytest.raises(ConfigError, match="not a Hudi table") as caught:
        TableConfig.load(table(None))
    _names_file_and_remedy(caught.value)
    assert caught.value.exit_code == 2
    assert TableConfig.load(table(None, backup=properties())).name == "t"


def test_a_table_without_a_checksum_or_database_is_tolerated() -> None:
    config = TableConfig.load(
        table(
            properties(
                hoodie__table__checksum=None, hoodie__database__name=None, hoodie__timeline__layout__version=None
            )
        )
    )
    assert (config.database, config.layout_version, config.payload_class, config.history_folder) == (
        "",
        1,
        None,
        ".hoodie/archived",
    )
    assert (config.timezone, config.populate_meta_fields, config.base_file_format) == ("LOCAL", True, "PARQUET")
    assert (config.metadata_partitions, config.record_key_fields, config.ordering_fields) == (frozenset(), (), ())


class Updating(MemoryStorage):
    """A writer that replaces the properties between our reads (backup, delete, write, delete the backup)."""

    def __init__(self, steps: list[Callable[[MemoryStorage], object]]) -> None:
        super().__init__()
        self.steps = steps

    def read(self, path: str) -> bytes:
        if self.steps:
            self.steps.pop(0)(self)
        return super().read(path)


def test_a_reader_during_an_update_finds_one_of_the_two() -> None:
    def deleted(storage: MemoryStorage) -> None:
        storage.write(BACKUP, properties())
        storage.delete(PROPERTIES)

    def finished(storage: MemoryStorage) -> None:
        storage.write(PROPERTIES, properties(hoodie__populate__meta__fields="false"))
        storage.delete(BACKUP)

    def torn(storage: MemoryStorage) -> None:
        storage.write(BACKUP, b"")
        storage.write(PROPERTIES, properties()[:20])

    assert TableConfig.load(Updating([deleted])).populate_meta_fields is True
    assert TableConfig.load(Updating([deleted, finished])).populate_meta_fields is False
    assert TableConfig.load(Updating([torn, lambda _: None, lambda _: None, finished])).populate_meta_fields is False


def test_custom_partition_fields_lose_their_type() -> None:
    config = TableConfig.parse(
        properties(
            **{"hoodie.table.partition.fields": "dt:SIMPLE, ms:TIMESTAMP", "hoodie.table.ordering.fields": "a,b"}
        )
    )
    assert config.partition_fields == ("dt", "ms")
    assert config.ordering_fields == ("a", "b")
