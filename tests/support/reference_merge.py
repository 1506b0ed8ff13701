"""The merge rules as slow and obvious Python: one version after the other, one row after the other, each rule in the
words of its Java class.

Nothing here is shared with hudi_core but the names of rules, payload classes and fills.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_core.config.rows_config import Payload
from hudi_core.filegroup.merge.table_policy import Fill, MergePolicy, Rules

Row = dict[str, Any]
META = ("_hoodie_commit_time",)
DEFAULTS = {"level": 7, "wide": 1000, "label": "none"}
"""The defaults of the tests' columns; the others have null."""
MARKER = "?"


@dataclass(frozen=True)
class Version:
    """A version of a row. Entries of delete blocks have no row. `ordering` is None where there is none; `columns` are
    those of a partial block.
    """

    key: str
    ordering: int | None
    row: Row | None = None
    deleted: bool = False
    columns: frozenset[str] | None = None

    @property
    def natural(self) -> bool:
        """A delete without an ordering value."""
        return self.deleted and self.ordering is None


def record(
    key: str, ordering: int | None, row: Row, deleted: bool = False, columns: frozenset[str] | None = None
) -> Version:
    """A log record."""
    return Version(key, ordering, row, deleted, columns)


def entry(key: str, ordering: int | None) -> Version:
    """An entry of a delete block."""
    return Version(key, ordering, None, True)


@dataclass
class Merged:
    """Rows after the merge and HoodieMergeHandle's counts."""

    rows: list[Row] = field(default_factory=list)
    updated: int = 0
    kept: int = 0
    deleted: int = 0
    inserted: int = 0
    missed_deletes: int = 0


class Reference:
    """Folds and merges by one policy."""

    def __init__(self, policy: MergePolicy) -> None:
        self.policy = policy
        self.partial_seen = False

    def fold(self, versions: Iterable[Version]) -> dict[str, Version]:
        """What the logs leave of each key, keys in the order of their first version."""
        held: dict[str, Version] = {}
        for version in versions:
            self.partial_seen |= version.columns is not None
            old = held.get(version.key)
            held[version.key] = version if old is None else self.logs(old, version)
        return held

    def merge(self, base: Iterable[Row], held: dict[str, Version]) -> Merged:
        """HoodieMergeHandle.write for each base row, then writeIncomingRecords."""
        result = Merged()
        matched = set()
        for row in base:
            new = held.get(row["key"])
            if new is None:
                result.rows.append(row)
                continue
            matched.add(row["key"])
            old = Version(row["key"], row["ordering"], row)
            left = self.base(old, new)
            if left is old:
                result.rows.append(row)
                result.kept += 1
            elif left.deleted:
                result.deleted += 1
            else:
                assert left.row is not None
                result.rows.append(left.row)
                result.updated += 1
        for key, version in held.items():
            if key in matched:
                continue
            if version.deleted:
                result.missed_deletes += 1
            else:
                assert version.row is not None
                result.rows.append(version.row)
                result.inserted += 1
        return result

    def logs(self, old: Version, new: Version) -> Version:
        """Two versions in the logs."""
        rules = self.policy.rules
        if rules is Rules.PAYLOAD_0_15:
            return self.logs_0_15(old, new)
        if rules is Rules.COMMIT_TIME:
            return self.completed(new, old) if both_rows(old, new) else new
        if rules is Rules.EVENT_TIME:
            return self.delete_entry(old, new) if new.row is None else self.event_time(old, new)
        if rules is Rules.CUSTOM_1_0:
            return self.delete_entry(old, new) if new.row is None else self.custom_1_0(old, new)
        return self.custom_1_1(old, new)

    def base(self, old: Version, new: Version) -> Version:
        """A base row and what the logs have left of its key. Returns `old` itself where the base row stays."""
        rules = self.policy.rules
        if rules is Rules.PAYLOAD_0_15:
            return self.base_0_15(old, new)
        if rules is Rules.COMMIT_TIME:
            return self.completed(new, old) if both_rows(old, new) else new
        if rules is Rules.EVENT_TIME:
            return self.event_time(old, new)
        return self.custom_1_0(old, new) if rules is Rules.CUSTOM_1_0 else self.custom_1_1(old, new)

    def logs_0_15(self, old: Version, new: Version) -> Version:
        """HoodieMergedLogRecordScanner with OverwriteWithLatestAvroPayload.preCombine or
        PartialUpdateAvroPayload.preCombine.
        """
        if new.row is None:
            return old if old.row is not None and above(old, new) else new
        if old.row is None:
            return new
        if self.policy.payload is not Payload.PARTIAL_UPDATE:
            return old if above(old, new) else new
        if above(old, new):
            return self.flagged_again(self.field_wise(old, new, meta_of=new))
        return new if new.deleted else self.flagged_again(self.field_wise(new, old, meta_of=new))

    def base_0_15(self, old: Version, new: Version) -> Version:
        """combineAndGetUpdateValue of each payload class."""
        payload = self.policy.payload
        if new.row is None:
            return new
        if payload in (Payload.DEFAULT, Payload.POSTGRES):
            if above(old, new):
                return old
            return self.field_wise(new, old) if payload is Payload.POSTGRES and not new.deleted else new
        if new.deleted:
            return new
        if payload is Payload.EVENT_TIME:
            return old if above(old, new) else new
        if payload is Payload.NON_DEFAULTS:
            return self.field_wise(new, old)
        if payload is Payload.PARTIAL_UPDATE:
            return self.flagged_again(
                self.field_wise(old, new, meta_of=new) if above(old, new) else self.field_wise(new, old)
            )
        return new

    def event_time(self, old: Version, new: Version) -> Version:
        """shouldKeepNewerRecord, and the partial mergers around it."""
        newer = new.natural or old.natural or not above(old, new)
        if both_rows(old, new):
            return self.completed(new, old) if newer else self.completed(old, new)
        return new if newer else old

    def delete_entry(self, old: Version, new: Version) -> Version:
        """deltaMergeDeleteRecord."""
        if old.natural:
            return old
        return old if not new.natural and not self.policy.string_deletes_win and above(old, new) else new

    def completed(self, high: Version, low: Version) -> Version:
        """PartialUpdateHandler.partialMerge or SparkRecordMergingUtils.mergePartialRecords; `high` itself where nothing
        is to be completed.
        """
        if self.policy.fill is not Fill.NOTHING:
            return self.field_wise(high, low)
        if high.columns is None:
            return high
        assert high.row is not None
        assert low.row is not None
        row = {name: high.row[name] if name in high.columns else low.row[name] for name in high.row}
        columns = None if low.columns is None else high.columns | low.columns
        return replace(
            high, row=row, columns=columns, ordering=low.ordering if high.ordering is None else high.ordering
        )

    def custom_1_0(self, old: Version, new: Version) -> Version:
        """doProcessNextDataRecord and merge, CUSTOM, of FileGroupRecordBuffer."""
        if old.deleted or new.deleted:
            return new if new.natural or old.natural or not above(old, new) else old
        return self.combine(old, new)

    def custom_1_1(self, old: Version, new: Version) -> Version:
        """HoodieAvroRecordMerger.merge."""
        if new.natural or old.natural or old.row is None:
            return new
        payload = self.policy.payload
        if new.row is None or new.deleted:
            ordered = payload in (Payload.DEFAULT, Payload.EVENT_TIME) or (
                payload is Payload.POSTGRES and new.row is not None
            )
            return old if ordered and above(old, new) else new
        return self.combine(old, new)

    def combine(self, old: Version, new: Version) -> Version:
        """combineAndGetUpdateValue of a record that is not deleted, on what is stored."""
        payload = self.policy.payload
        if payload in (Payload.DEFAULT, Payload.EVENT_TIME):
            return old if above(old, new) else new
        if payload is Payload.NON_DEFAULTS:
            return self.field_wise(new, old)
        if payload is Payload.PARTIAL_UPDATE:
            if not above(old, new):
                return self.field_wise(new, old)
            return old if old.deleted else self.field_wise(old, new, meta_of=new)
        if payload is Payload.POSTGRES:
            if above(old, new):
                return old
            return new if self.policy.fill is Fill.NOTHING else self.field_wise(new, old)
        return new

    def field_wise(self, high: Version, low: Version, meta_of: Version | None = None) -> Version:
        """`high` with the fields that give way taken from `low`."""
        assert high.row is not None
        assert low.row is not None
        row = {}
        for name in high.row:
            first, second = (high, low) if meta_of is None or name not in META or meta_of is high else (low, high)
            assert first.row is not None
            assert second.row is not None
            row[name] = second.row[name] if self.gives_way(name, first.row[name]) else first.row[name]
        ordering = low.ordering if high.ordering is None else high.ordering
        return Version(high.key, ordering, row)

    def gives_way(self, name: str, value: Any) -> bool:
        fill = self.policy.fill
        if fill in (Fill.MARKER, Fill.NOTHING):
            return fill is Fill.MARKER and bool(value == MARKER)
        if fill is Fill.NULL or name not in DEFAULTS:
            return value is None
        if fill is Fill.REFERENCE_DEFAULT:
            return name == "level" and value == DEFAULTS["level"]
        return bool(value == DEFAULTS[name])

    def flagged_again(self, version: Version) -> Version:
        """BaseAvroPayload's constructor looks at the merged record's flag."""
        assert version.row is not None
        return replace(version, deleted=version.row["_hoodie_is_deleted"] is True)


def both_rows(old: Version, new: Version) -> bool:
    return not old.deleted and not new.deleted


def above(old: Version, new: Version) -> bool:
    """Whether the older ordering value is the greater; a missing one compares with none."""
    return old.ordering is not None and new.ordering is not None and old.ordering > new.ordering
