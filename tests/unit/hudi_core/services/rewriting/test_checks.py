"""What a compaction refuses before it writes anything, on every table version."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hudi_core.config.table_config import TableConfig
from hudi_core.errors import (
    ConflictError,
    FormatError,
    HudiError,
    MetadataUnavailableError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.services.rewriting.checks import check_schema_of_latest
from hudi_core.storage.local import LocalStorage
from hudi_core.table import HudiTable
from hudi_core.timeline.actions.compaction import CompactionOperation, CompactionPlan, encode_compaction_plan
from hudi_core.timeline.active import ActiveTimeline
from hudi_core.timeline.instant import Action, State
from hudi_core.transaction.commit import Completer
from tests.support.changed_tables import open_context
from tests.support.fault_storage import InjectedCrash
from tests.support.golden_data import GoldenCase
from tests.support.table_invariants import assert_compacted, pending_instants, read_rows
from tests.support.tiers import tiered
from tests.unit.hudi_core.services.compaction.test_job import assert_refused, compact, pending_instant

Golden = Callable[[str, str], GoldenCase]


def test_payloads_that_are_not_known_are_refused(golden: Golden) -> None:
    table = golden("6", "payload_default").table
    properties = table / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("org.apache.hudi.common.model.Default", "com.example.My"))
    assert_refused(table, UnsupportedError, r"com\.example\.MyHoodieRecordPayload")


@pytest.mark.parametrize(
    ("key", "error"),
    [("partitions=vector_index,files", UnsupportedError), ("partitions.inflight=record_index", ConflictError)],
)
def test_metadata_that_would_go_stale_is_refused(golden: Golden, key: str, error: type[HudiError]) -> None:
    table = golden("6", "mor_compaction_requested").table
    set_properties(table, f"hoodie.table.metadata.{key}")
    assert_refused(table, error, "vector_index|record_index")


def test_listed_metadata_that_is_not_there_is_refused(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    set_properties(table, "hoodie.table.metadata.partitions=column_stats,files")
    assert_refused(table, StorageNotFoundError, "column_stats.*no file group")


@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_rows_without_meta_columns_need_key_fields(golden: Golden, version: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    set_properties(table, "hoodie.populate.meta.fields=false")
    set_properties(table, "hoodie.table.recordkey.fields=")
    assert_refused(table, UnsupportedError, "without record key fields")


@pytest.mark.parametrize("file_format", ["ORC", "HFILE"])
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_base_files_of_other_formats_are_refused(golden: Golden, version: str, file_format: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    set_properties(table, f"hoodie.table.base.file.format={file_format}")
    assert_refused(table, UnsupportedError, f"base files of format {file_format}")


def test_a_merger_class_of_version_6_that_is_not_known_is_refused(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    name = "hoodie.compaction.record.merger.strategy"
    set_properties(table, f"{name}=11111111-2222-3333-4444-555555555555")
    assert_refused(table, UnsupportedError, f"{name} is 11111111-.*a merger class")
    with pytest.raises(UnsupportedError, match=name):
        read_rows(table)


def test_a_merger_class_that_is_not_known_is_refused(golden: Golden) -> None:
    table = golden("9", "mor_compaction_requested_only").table
    set_properties(table, "hoodie.record.merge.mode=CUSTOM")
    set_properties(table, "hoodie.record.merge.strategy.id=1897ef5f-18bc-4557-939c-9d6a8afd1519")
    assert_refused(table, UnsupportedError, "merger class")


def test_a_listed_metadata_table_that_is_gone_is_refused(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    shutil.rmtree(table / ".hoodie" / "metadata")
    assert_refused(table, MetadataUnavailableError, "cannot be read")


def test_a_plan_without_operations_is_refused(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested_only").table
    path = table / ".hoodie" / f"{pending_instant(table)}.compaction.requested"
    path.write_bytes(encode_compaction_plan(CompactionPlan(())))
    assert_refused(table, FormatError, "no operations")


def rewrite_plan(table: Path, change: Callable[[CompactionOperation], CompactionOperation]) -> str:
    """Changes the plan's first operation that has a base file and logs; returns the name of the plan's file."""
    storage = LocalStorage(table)
    active = ActiveTimeline(storage, TableConfig.load(storage))
    instant = pending_instant(table)
    plan = active.read_plan(instant)
    chosen = next(item for item in plan.operations if item.base_file is not None and item.log_files)
    operations = tuple(change(item) if item is chosen else item for item in plan.operations)
    path = table / active.path(instant, Action.COMPACTION, State.REQUESTED)
    path.write_bytes(encode_compaction_plan(replace(plan, operations=operations)))
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    return path.name


LOSSY: dict[str, Callable[[CompactionOperation], CompactionOperation]] = {
    "no base file": lambda item: replace(item, base_file=None),
    "no first log": lambda item: replace(item, log_files=item.log_files[1:]),
    "no last log": lambda item: replace(item, log_files=item.log_files[:-1]),
}


@pytest.mark.parametrize("change", LOSSY)
@pytest.mark.parametrize("version", ["6", "8", "9"])
def test_a_plan_without_a_file_of_its_slice_is_refused(golden: Golden, version: str, change: str) -> None:
    table = golden(version, "mor_compaction_requested").table
    name = rewrite_plan(table, LOSSY[change])
    error = assert_refused(table, FormatError, "file slice that file group")
    assert str(error.path).endswith(name)
    assert f"unschedule TABLE {pending_instant(table)}" in str(error.remedy)


@pytest.mark.parametrize("version", tiered(["6", "8", "9"], ["6", "9"]))
def test_a_plan_whose_completion_is_decided_is_not_refused(
    golden: Golden, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are final, and the next owner puts the commit, whatever the plan says by then."""
    table = golden(version, "mor_compaction_requested").table
    instant, rows, pending = pending_instant(table), read_rows(table), pending_instants(table)

    def killed(*_: object, **__: object) -> None:
        raise InjectedCrash("right after the decision")

    with monkeypatch.context() as dying:
        dying.setattr(Completer, "_put", killed)
        with pytest.raises(InjectedCrash):
            compact(table)
    rewrite_plan(table, LOSSY["no base file"])
    compact(table, instant=instant)
    assert_compacted(table, instant, rows, pending)


def test_a_damaged_plan_is_named(golden: Golden) -> None:
    table = golden("6", "mor_compaction_requested").table
    path = table / ".hoodie" / f"{pending_instant(table)}.compaction.requested"
    path.write_bytes(path.read_bytes()[:-20])
    assert_refused(table, FormatError, path.name)


def test_schema_on_read_evolution_is_refused(golden: Golden) -> None:
    """The column names of the Avro schema would not be those of the older files."""
    table = golden("6", "mor_compaction_requested").table
    latest = HudiTable.open(str(table)).timeline().commits().last()
    assert latest is not None
    path = table / ".hoodie" / f"{latest.requested_time}.deltacommit"
    raw = json.loads(path.read_text())
    raw["extraMetadata"]["latest_schema"] = '{"max_column_id": 3}'
    path.write_text(json.dumps(raw))
    assert_refused(table, UnsupportedError, "schema-on-read")


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_history_of_schema_on_read_is_refused(golden: Golden, version: str) -> None:
    """The newest commit may be a clustering of Hudi, which carries no schema of it."""
    table = golden(version, "mor_compaction_requested").table
    context = open_context(table)
    timeline = context.active.load()
    first = timeline.commits().instants[0].requested_time
    schema = {"version_id": int(first), "type": "record", "fields": [{"id": 0, "name": "id", "type": "string"}]}
    content = json.dumps({"schemas": [schema]}).encode()
    context.storage.write(f".hoodie/.schema/{pending_instant(table)}.schemacommit", content)
    check_schema_of_latest(context, timeline)  # not of a completed commit
    context.storage.write(f".hoodie/.schema/{first}.schemacommit", content)
    error = assert_refused(table, UnsupportedError, "schema-on-read")
    assert error.path == ".hoodie/.schema"


def set_properties(table: Path, line: str) -> None:
    properties = table / ".hoodie" / "hoodie.properties"
    name = line.split("=", 1)[0] + "="
    kept = [existing for existing in properties.read_text().splitlines() if not existing.startswith(name)]
    properties.write_text("\n".join([*kept, line]) + "\n")
    (table / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)
