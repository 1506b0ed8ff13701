"""Random tables: how each is made and what is done to it, by a seed; and random questions to ask of it.

A workload is a list of steps for tests/torture/random_runs.py, which gives them to real Hudi. A step may be impossible
when its turn comes (nothing to compact, a write that Hudi refuses); then the table goes without it.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

KINDS = {"6": ("0.15.0", "6"), "6-by-1.2.0": ("1.2.0", "6"), "8-by-1.2.0": ("1.2.0", "8"), "9": ("1.2.0", "9")}
"""Which Hudi writes and reads, and the table version that it has to write."""

PACKAGE = "org.apache.hudi.common.model."
PAYLOADS = (
    "OverwriteWithLatestAvroPayload",
    "DefaultHoodieRecordPayload",
    "EventTimeAvroPayload",
    "OverwriteNonDefaultsWithLatestAvroPayload",
    "PartialUpdateAvroPayload",
)
KEYS = [f"k{number:02d}" for number in range(60)]
UTC = dt.timezone.utc
Maker = Callable[[random.Random], Any]


def _text(dice: random.Random) -> str:
    return dice.choice(["", "a", "b", "Zürich", "長い", "x" * 70, "tail ", "A"])


def _timestamp(dice: random.Random) -> dt.datetime:
    return dt.datetime(2024, 1, dice.randrange(1, 5), 3, 4, 5, dice.choice([0, 678000, 678901]), tzinfo=UTC)


def _double(dice: random.Random) -> float:
    return dice.choice([0.0, -1.5, 2.25, 1e300, float("nan"), float("inf")])


STRUCT = pa.struct([("city", pa.string()), ("size", pa.int32())])
TYPES: list[tuple[pa.DataType, Maker]] = [
    (pa.int32(), lambda dice: dice.randrange(-3, 4)),
    (pa.int64(), lambda dice: dice.choice([0, -1, 5, 2**40])),
    (pa.float32(), lambda dice: dice.choice([0.0, -0.5, 1.25])),
    (pa.float64(), _double),
    (pa.string(), _text),
    (pa.bool_(), lambda dice: dice.random() < 0.5),
    (pa.decimal128(10, 2), lambda dice: Decimal(dice.randrange(-500, 500)) / 100),
    (pa.date32(), lambda dice: dt.date(2024, 2, dice.randrange(1, 29))),
    (pa.timestamp("us", "UTC"), _timestamp),
    (pa.binary(), lambda dice: dice.choice([b"", b"\x00\xff", b"abc"])),
    (STRUCT, lambda dice: {"city": _text(dice), "size": dice.choice([None, 1, 2])}),
    (pa.list_(pa.int64()), lambda dice: [dice.randrange(5) for _ in range(dice.randrange(3))]),
    (pa.list_(STRUCT), lambda dice: [{"city": None, "size": 7}] * dice.randrange(3)),
    (pa.map_(pa.string(), pa.float64()), lambda dice: [("p", 1.5), ("q", -2.0)][: dice.randrange(3)]),
]
ORDERINGS: list[tuple[pa.DataType, Maker]] = [
    (pa.int64(), lambda dice: 1_700_000_000_000 + dice.randrange(6)),
    (pa.int64(), lambda dice: dice.randrange(1, 6)),
    (pa.int32(), lambda dice: dice.randrange(1, 6)),
    (pa.float64(), lambda dice: dice.randrange(1, 6) / 4),
    (pa.timestamp("us", "UTC"), _timestamp),
    (pa.string(), lambda dice: f"t{dice.randrange(6)}"),
]
PARTITIONS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["bern", "basel"]),
    (pa.string(), ["bern", "basel", "genf"]),
    (pa.string(), ["2024-01-01", "2024-01-02"]),
    (pa.int32(), [1, 30]),
    (pa.date32(), [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
]
ODD = ["a b=1", "100%:v", "ü/ö+"]


@dataclass(frozen=True)
class Column:
    """A column and how its values are made; `share` of them are null."""

    name: str
    kind: pa.DataType
    make: Maker
    share: float = 0.0

    def value(self, dice: random.Random) -> Any:
        return None if dice.random() < self.share else self.make(dice)


@dataclass(frozen=True)
class Step:
    """Something to do to the table. `rows` are for writes; `options` go before the table's."""

    name: str
    rows: pa.Table | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Workload:
    """A table by `kind` (a key of KINDS) and `seed`: the first step creates it."""

    kind: str
    seed: int
    options: dict[str, str]
    columns: list[Column]
    steps: list[Step]

    @property
    def hudi(self) -> str:
        """The Hudi version that writes and reads it."""
        return KINDS[self.kind][0]


def workload(kind: str, seed: int) -> Workload:
    """The workload of a seed: the same in every run."""
    return _Maker(kind, seed).workload()


class _Maker:
    """Draws one workload. The order of the draws makes the table, so adding one changes all seeds."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind, self.seed = kind, seed
        self.dice = random.Random(f"{kind}-{seed}")
        self.on_read = self.dice.random() < 0.65
        self.odd = self.dice.random() < 0.3
        self.partitions = [
            Column(name, *self._partition_values())
            for name in self.dice.choices([[], ["region"], ["region", "day"]], [1, 3, 1])[0]
        ]
        kind_of_ordering, make = self.dice.choice(ORDERINGS)
        ordered = kind not in ("9", "8-by-1.2.0") or self.dice.random() < 0.85
        self.ordering = [Column("ts", kind_of_ordering, make)] if ordered else []
        if kind == "9" and ordered and self.dice.random() < 0.2:
            self.ordering.append(Column("seq", pa.int32(), lambda dice: dice.randrange(1, 4)))
        self.key_fields = ["id", "line"] if self.dice.random() < 0.2 else ["id"]
        chosen = [(pa.int32(), TYPES[0][1]), *self.dice.sample(TYPES, self.dice.randrange(2, 6))]
        self.columns = [
            Column("id", pa.string(), lambda dice: dice.choice(KEYS)),
            Column("line", pa.int32(), lambda dice: 1),
            *self.ordering,
            *self.partitions,
            *(Column(f"c{number}", drawn, maker, 0.2) for number, (drawn, maker) in enumerate(chosen)),
        ]
        if self.dice.random() < 0.5:
            self.columns.append(Column("_hoodie_is_deleted", pa.bool_(), lambda dice: dice.random() < 0.15))

    def _partition_values(self) -> tuple[pa.DataType, Maker, float]:
        drawn, values = self.dice.choice(PARTITIONS)
        if self.odd:
            drawn, values = pa.string(), ODD
        share = 0.1 if drawn == pa.string() and self.dice.random() < 0.3 else 0.0
        return drawn, lambda dice: dice.choice(values), share

    def rows(self, keys: list[str], *, deletes: bool = True, one_partition: bool = False) -> pa.Table:
        """A row of each key; nearly every key keeps to its partition, so that it is found again."""
        placed = random.Random(self.dice.random()) if one_partition else None
        made = []
        for key in keys:
            home = random.Random(f"{self.seed}-{key}") if self.dice.random() < 0.95 else self.dice
            row = {column.name: column.value(self.dice) for column in self.columns if column not in self.partitions}
            row.update({column.name: column.value(home) for column in self.partitions})
            row["id"] = key
            if not deletes and "_hoodie_is_deleted" in row:
                row["_hoodie_is_deleted"] = False
            made.append(row)
        if placed is not None and made:
            same = {column.name: placed.choice(made)[column.name] for column in self.partitions}
            made = [{**row, **same} for row in made]
        return pa.Table.from_pylist(made, schema=pa.schema([(column.name, column.kind) for column in self.columns]))

    def some(self, least: int, most: int) -> list[str]:
        return sorted(self.dice.sample(KEYS, self.dice.randrange(least, most)))

    def workload(self) -> Workload:
        options = self.options()
        first = self.dice.choice(["insert", "insert", "bulk_insert", "upsert"])
        steps = [Step(first, self.rows(self.some(25, 45), deletes=False))]
        impossible = {*([] if self.on_read else ON_READ), *([] if self.partitions else ["delete_partition"])}
        names, weights = zip(
            *((name, weight) for name, weight in WEIGHTS.items() if name not in impossible), strict=True
        )
        steps.extend(self.step(self.dice.choices(names, weights)[0]) for _ in range(self.dice.randrange(4, 11)))
        return Workload(self.kind, self.seed, options, self.columns, steps)

    def step(self, name: str) -> Step:
        if name in ("insert", "bulk_insert"):
            return Step(name, self.rows(self.some(3, 10), deletes=False))
        if name == "upsert":
            return Step(name, self.rows(self.some(5, 30)))
        if name == "upsert_and_compact":
            return Step(
                "upsert",
                self.rows(self.some(5, 30)),
                {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"},
            )
        if name == "upsert_and_archive":
            return Step(
                "upsert", self.rows(self.some(5, 20)), self.small_timeline() | {"hoodie.archive.automatic": "true"}
            )
        if name == "delete":
            return Step(name, self.rows(self.some(3, 12), deletes=False))
        if name in ("insert_overwrite", "insert_overwrite_table"):
            return Step(name, self.rows(self.some(3, 12), deletes=False, one_partition=name == "insert_overwrite"))
        if name == "add_column":
            drawn, maker = self.dice.choice(TYPES)
            self.columns.append(Column(f"e{len(self.columns)}", drawn, maker, 0.3))
            return Step("upsert", self.rows(self.some(5, 20)))
        if name == "widen":
            self.columns = [Column(c.name, pa.int64(), c.make, c.share) if c.name == "c0" else c for c in self.columns]
            return Step("upsert", self.rows(self.some(5, 20)))
        if name in ("clean", "archive"):
            return Step(name, None, self.small_timeline())
        if name == "delete_partition":
            return Step(name, self.rows(self.some(1, 2), deletes=False))
        return Step(name)  # one of the services

    def small_timeline(self) -> dict[str, str]:
        return {
            "hoodie.clean.commits.retained": "1",
            "hoodie.cleaner.commits.retained": "1",
            "hoodie.keep.min.commits": "2",
            "hoodie.keep.max.commits": "3",
            "hoodie.metadata.compact.max.delta.commits": "1",
        }

    def options(self) -> dict[str, str]:
        dice = self.dice
        partitions = ",".join(column.name for column in self.partitions)
        generator = "NonpartitionedKeyGenerator" if not partitions else "SimpleKeyGenerator"
        if len(self.partitions) > 1 or (partitions and len(self.key_fields) > 1):
            generator = "ComplexKeyGenerator"
        chosen = {
            "hoodie.table.name": "random",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ" if self.on_read else "COPY_ON_WRITE",
            "hoodie.datasource.write.recordkey.field": ",".join(self.key_fields),
            "hoodie.datasource.write.partitionpath.field": partitions,
            "hoodie.datasource.write.keygenerator.class": f"org.apache.hudi.keygen.{generator}",
            "hoodie.datasource.write.hive_style_partitioning": dice.choice(["true", "false"]),
            "hoodie.datasource.write.partitionpath.urlencode": "true" if self.odd else "false",
            "hoodie.compact.inline": "false",
            "hoodie.clean.automatic": "false",
            "hoodie.archive.automatic": "false",
            "hoodie.embed.timeline.server": "false",
            **{f"hoodie.{name}.shuffle.parallelism": "1" for name in ("insert", "upsert", "delete", "bulkinsert")},
            **self._ordering(),
            **self._metadata(),
            **dice.choice([{}, {"hoodie.parquet.small.file.limit": "0"}]),
            **dice.choice(
                [{}, {"hoodie.copyonwrite.insert.auto.split": "false", "hoodie.copyonwrite.insert.split.size": "8"}]
            ),
        }
        index = dice.choice(["SIMPLE", "SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "BUCKET"])
        chosen["hoodie.index.type"] = index
        if index == "BUCKET":
            chosen |= {"hoodie.bucket.index.num.buckets": "2", "hoodie.bucket.index.hash.field": "id"}
        if self.on_read and dice.random() < 0.2:
            chosen["hoodie.logfile.data.block.format"] = "parquet"
        if KINDS[self.kind][0] != "0.15.0":
            chosen |= {"hoodie.write.table.version": KINDS[self.kind][1], "hoodie.write.auto.upgrade": "false"}
            chosen["hoodie.write.record.positions"] = dice.choice(["true", "false"])
        return chosen

    def _ordering(self) -> dict[str, str]:
        if not self.ordering:
            return {}
        fields = ",".join(column.name for column in self.ordering)
        chosen = {"hoodie.datasource.write.precombine.field": fields}
        if len(self.ordering) > 1:
            chosen["hoodie.table.ordering.fields"] = fields
        drawn = self.dice.random()
        if drawn < 0.5:
            chosen["hoodie.datasource.write.payload.class"] = PACKAGE + self.dice.choice(PAYLOADS)
        elif self.kind in ("8-by-1.2.0", "9") and drawn < 0.8:
            chosen["hoodie.write.record.merge.mode"] = self.dice.choice(["EVENT_TIME_ORDERING", "COMMIT_TIME_ORDERING"])
        return chosen

    def _metadata(self) -> dict[str, str]:
        if self.dice.random() < 0.25:
            return {"hoodie.metadata.enable": "false"}
        chosen = {
            "hoodie.metadata.enable": "true",
            "hoodie.metadata.compact.max.delta.commits": self.dice.choice(["2", "10"]),
        }
        for name in ("index.column.stats", "index.bloom.filter", "record.index", "global.record.level.index"):
            chosen[f"hoodie.metadata.{name}.enable"] = self.dice.choice(["true", "false"])
        return chosen | {
            "hoodie.metadata.record.index.min.filegroup.count": "2"
        }  # not 10, each of which costs every write a task


WEIGHTS = {
    "insert": 2.0,
    "upsert": 8.0,
    "delete": 3.0,
    "bulk_insert": 1.0,
    "insert_overwrite": 1.0,
    "insert_overwrite_table": 0.4,
    "delete_partition": 0.7,
    "upsert_and_compact": 1.5,
    "upsert_and_archive": 1.0,
    "schedule_compaction": 2.0,
    "compact": 1.0,
    "schedule_clustering": 1.0,
    "cluster": 1.0,
    "schedule_log_compaction": 0.5,
    "log_compact": 0.4,
    "clean": 1.2,
    "archive": 0.7,
    "rollback": 1.0,
    "savepoint": 0.7,
    "restore": 0.7,
    "add_column": 0.7,
    "widen": 0.5,
}
ON_READ = ("upsert_and_compact", "schedule_compaction", "compact", "schedule_log_compaction", "log_compact")


def predicates(dice: random.Random, table: Workload, rows: list[dict[str, Any]], count: int) -> list[str]:
    """Conditions in Spark's SQL on the columns of the newest schema, with values of `rows`."""
    fields = [(column.name, column.kind) for column in table.columns]
    fields += [
        ("_hoodie_record_key", pa.string()),
        ("_hoodie_partition_path", pa.string()),
        ("_hoodie_commit_time", pa.string()),
    ]
    simple = [field for column in fields for field in _simple(*column)]
    found: list[str] = []
    while len(found) < count:
        terms = [_term(dice, *dice.choice(simple), rows) for _ in range(dice.choice([1, 1, 2, 3]))]
        text = dice.choice([" AND ", " OR "]).join(f"({term})" for term in terms)
        found.append(f"NOT ({text})" if dice.random() < 0.2 else text)
    return found


def _simple(name: str, kind: pa.DataType) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        return [(f"{name}.{kind.field(number).name}", kind.field(number).type) for number in range(kind.num_fields)]
    if pa.types.is_nested(kind) or pa.types.is_binary(kind):
        return []
    return [(name, kind)]


def _term(dice: random.Random, name: str, kind: pa.DataType, rows: list[dict[str, Any]]) -> str:
    values = [value for row in rows if (value := _value(row, name)) is not None]
    drawn = dice.random()
    if drawn < 0.15 or not values:
        return f"{name} IS {dice.choice(['', 'NOT '])}NULL"
    if pa.types.is_boolean(kind):
        return dice.choice([name, f"NOT {name}", f"{name} = FALSE"])
    literals = [literal(dice.choice(values), kind) for _ in range(3)]
    if drawn < 0.35:
        return f"{name} {dice.choice(['', 'NOT '])}IN ({', '.join(literals)})"
    if drawn < 0.45 and pa.types.is_string(kind) and values:
        return f"{name} LIKE '{str(dice.choice(values))[:2].replace('%', '')}%'"
    return f"{name} {dice.choice(['=', '=', '<>', '<', '<=', '>', '>='])} {literals[0]}"


def _value(row: dict[str, Any], name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = None if value is None else value.get(part)
    return value


def literal(value: Any, kind: pa.DataType) -> str:
    """A value as Spark's SQL writes it."""
    if pa.types.is_floating(kind):
        return f"CAST('{value}' AS DOUBLE)" if value != value or abs(value) == float("inf") else f"{value!r}D"
    if pa.types.is_decimal(kind):
        return f"{value}BD"
    if pa.types.is_date(kind):
        return f"DATE '{value}'"
    if pa.types.is_timestamp(kind):
        return f"TIMESTAMP '{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
    return f"'{value}'" if pa.types.is_string(kind) else str(value)
