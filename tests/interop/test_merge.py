"""Merges that no golden table has, on tables that real Hudi writes here and reads back: what it reads is what we read.

Rows arrive out of order, with ties; keys are deleted softly, by marker and by the delete operation, and come back.
"""

from __future__ import annotations

import datetime
import random
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.codec.log.blocks import HeaderKey
from hudi_core.table import HudiTable
from tests.interop.changes import write_parquet
from tests.interop.real_hudi import RealHudi
from tests.support.rows import assert_same_rows
from tests.support.tiers import tiered

pytestmark = pytest.mark.hudi

PACKAGE = "org.apache.hudi.common.model."
MARKER = "__debezium_unavailable_value"
COMMON = {
    "hoodie.table.name": "merge",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "hoodie.metadata.enable": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.insert.shuffle.parallelism": "1",
}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("seq", pa.int32()),
        ("text", pa.string()),
        ("price", pa.decimal128(12, 3)),
        ("day", pa.date32()),
        ("note", pa.string()),
        ("level", pa.int32()),
        ("Op", pa.string()),
        ("_event_lsn", pa.int64()),
        ("_change_operation_type", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)

DMS, DEFAULT, EVENT_TIME = (
    PACKAGE + "AWSDmsAvroPayload",
    PACKAGE + "DefaultHoodieRecordPayload",
    PACKAGE + "EventTimeAvroPayload",
)
NON_DEFAULTS, PARTIAL_UPDATE = (
    PACKAGE + "OverwriteNonDefaultsWithLatestAvroPayload",
    PACKAGE + "PartialUpdateAvroPayload",
)
POSTGRES = PACKAGE + "debezium.PostgresDebeziumAvroPayload"


def ordered_by(fields: str) -> dict[str, str]:
    """The options of a table with these ordering fields, under the names of either Hudi."""
    return {
        "hoodie.datasource.write.precombine.field": fields,
        **({"hoodie.table.ordering.fields": fields} if "," in fields else {}),
    }


def of_payload(name: str, fields: str = "ts", **more: str) -> dict[str, str]:
    """The options of a table with this payload class."""
    return {
        **ordered_by(fields),
        "hoodie.datasource.write.payload.class": name,
        **{key.replace("__", "."): value for key, value in more.items()},
    }


V6, V9 = "0.15.0", "1.2.0"
V8 = {"hoodie.write.table.version": "8"}
CASES: dict[str, tuple[str, dict[str, str]]] = {
    "9-two-ordering-fields": (V9, ordered_by("ts,seq")),
    "9-text-ordering-field": (V9, ordered_by("text")),
    "9-decimal-ordering-field": (V9, ordered_by("price")),
    "9-int-ordering-field": (V9, ordered_by("seq")),
    "9-postgres": (V9, of_payload(POSTGRES, "_event_lsn")),
    "9-partial-update-payload": (V9, of_payload(PARTIAL_UPDATE)),
    "8-dms": (V9, of_payload(DMS) | V8),
    "8-event-time-payload": (V9, of_payload(EVENT_TIME) | V8),
    "8-non-defaults-payload": (V9, of_payload(NON_DEFAULTS) | V8),
    "8-partial-update-payload": (V9, of_payload(PARTIAL_UPDATE) | V8),
    "8-postgres": (V9, of_payload(POSTGRES, "_event_lsn") | V8),
    "6-text-ordering-field": (V6, ordered_by("text")),
    "6-decimal-ordering-field": (V6, ordered_by("price")),
    "6-default-payload-by-decimal": (V6, of_payload(DEFAULT, "price")),
    "6-dms": (V6, of_payload(DMS)),
    "6-event-time-payload": (V6, of_payload(EVENT_TIME)),
    "6-partial-update-payload": (V6, of_payload(PARTIAL_UPDATE)),
    "6-partial-update-payload-by-date": (V6, of_payload(PARTIAL_UPDATE, "day")),
    "6-partial-update-payload-by-decimal": (V6, of_payload(PARTIAL_UPDATE, "price")),
    "6-partial-update-payload-by-text": (V6, of_payload(PARTIAL_UPDATE, "text")),
    "6-postgres": (V6, of_payload(POSTGRES, "_event_lsn")),
    # The writer makes delete entries of marked rows; Hudi 0.15's readers know nothing of the marker.
    "6-delete-marker": (
        V6,
        of_payload(DEFAULT, hoodie__payload__delete__field="Op", hoodie__payload__delete__marker="D"),
    ),
}

QUICK = {"9-two-ordering-fields", "8-dms", "6-partial-update-payload"}
"""Those of `make test`: one of each version."""


def rows(dice: random.Random, keys: list[str], *, first: bool = False) -> pa.Table:
    """A version of each key; `first` ones are whole and not deleted."""

    def one(key: str) -> dict[str, Any]:
        number = dice.randrange(1, 6)
        deleted = not first and dice.random() < 0.15
        gone = not first and dice.random() < 0.15
        return {
            "id": key,
            "ts": 1_700_000_000_000 + number,
            "seq": dice.randrange(1, 4),
            "text": f"t{number}",
            "price": Decimal(number - 3) / 8,
            "day": datetime.date(2024, 1, number),
            "note": dice.choice(["a", "b", "c"] if first else ["d", "e", None, MARKER]),
            "level": dice.randrange(10) if first or dice.random() < 0.6 else None,
            "Op": "D" if gone else "U",
            "_event_lsn": 10_000 + number,
            "_change_operation_type": "d" if gone else "u",
            "_hoodie_is_deleted": deleted,
        }

    return pa.Table.from_pylist([one(key) for key in keys], schema=SCHEMA)


@pytest.mark.parametrize("name", tiered(CASES, QUICK))
def test_rows_are_those_that_real_hudi_reads(
    hudi_0_15: RealHudi, hudi_1_2: RealHudi, tmp_path: Path, name: str
) -> None:
    version, options = CASES[name]
    hudi = hudi_1_2 if version == V9 else hudi_0_15
    dice = random.Random(name)
    base = tmp_path / "table"
    keys = [f"k{number:03d}" for number in range(120)]
    given = {**COMMON, **options}
    hudi.ask(
        "create", base=str(base), parquet=write_parquet(rows(dice, keys, first=True), tmp_path, "first"), options=given
    )
    for number in range(5):
        some = dice.sample(keys, 70)
        if number == 2:
            gone = rows(dice, some[:25], first=True)
            hudi.ask(
                "write",
                base=str(base),
                operation="delete",
                parquet=write_parquet(gone, tmp_path, f"delete{number}"),
                options=given,
            )
        hudi.ask(
            "write",
            base=str(base),
            operation="upsert",
            parquet=write_parquet(rows(dice, some), tmp_path, f"upsert{number}"),
            options=given,
        )
    assert_read_alike(hudi, base)


def assert_read_alike(hudi: RealHudi, base: Path, *, most: int = 119) -> None:
    """All rows and columns as real Hudi reads them; of 120 keys some are gone where `most` is less, others came
    back.
    """
    theirs = hudi.snapshot(base, metadata=False)
    result = HudiTable.open(str(base)).read(metadata="off")
    assert 60 <= theirs.num_rows <= most
    assert_same_rows(pa.Table.from_batches(result.batches, result.schema), theirs, ignore=())


def plain(table: pa.Table) -> pa.Table:
    """The rows without the column that flags them."""
    return table.drop_columns(["_hoodie_is_deleted"])


@pytest.mark.conformance
@pytest.mark.parametrize("mode", ["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
def test_partial_updates_out_of_order(hudi_1_2: RealHudi, tmp_path: Path, mode: str) -> None:
    """MERGE INTO writes partial-update blocks of other columns each time, out of order; whole rows come between.

    Without the column `_hoodie_is_deleted` and without deletes: Hudi 1.2.0 cannot read partial updates of tables that
    have them (ArrayIndexOutOfBoundsException, NullPointerException, ClassCastException).
    """
    dice = random.Random(mode)
    base = tmp_path / "table"
    keys = [f"k{number:03d}" for number in range(120)]
    given = {**COMMON, **ordered_by("ts"), "hoodie.write.record.merge.mode": mode}
    hudi_1_2.ask(
        "create",
        base=str(base),
        parquet=write_parquet(plain(rows(dice, keys, first=True)), tmp_path, "first"),
        options=given,
    )
    hudi_1_2.ask("sql", statement=f"CREATE TABLE merged_{mode} USING hudi LOCATION '{base}'")
    for number, column in enumerate(("note", "level", "note", "text")):
        source = write_parquet(plain(rows(dice, dice.sample(keys, 60))), tmp_path, f"merge{number}")
        hudi_1_2.ask(
            "sql",
            statement=f"MERGE INTO merged_{mode} t USING (SELECT * FROM parquet.`{source}`) s ON t.id = s.id "
            f"WHEN MATCHED THEN UPDATE SET {column} = s.{column}, ts = s.ts",
        )
        if number % 2:
            some = write_parquet(plain(rows(dice, dice.sample(keys, 30))), tmp_path, f"upsert{number}")
            hudi_1_2.ask("write", base=str(base), operation="upsert", parquet=some, options=given)
    partial = struct.pack(">ii", HeaderKey.IS_PARTIAL, 4) + b"true"
    assert sum(partial in path.read_bytes() for path in base.glob(".*.log.*")) >= 3
    assert_read_alike(hudi_1_2, base, most=120)
