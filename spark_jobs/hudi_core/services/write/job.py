"""The job of a write of rows: bulk_insert, insert, upsert, delete (BaseCommitActionExecutor, BaseWriteHelper).

Before the instant is inflight, the rows are tagged with their file groups, as in Hudi: the inflight file tells other
writers which these are. An attempt that dies is rolled back with its instant, like a failed write.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import uuid4

from hudi_core.codec.avro.schema import AvroSchema
from hudi_core.config.services.compaction_config import MAX_FILE_BYTES
from hudi_core.errors import ConfigError, HudiError
from hudi_core.filegroup.merge.table_policy import MergePolicy
from hudi_core.filegroup.read.log_scan import CommittedInstants
from hudi_core.filegroup.read.schema_resolver import table_schema
from hudi_core.filegroup.write.buckets import Ring
from hudi_core.filegroup.write.hashing_metadata import create_ring
from hudi_core.metadata_table.partitions.row_level import SliceChange
from hudi_core.metadata_table.records.file_statistics import DataFileRef
from hudi_core.metadata_table.write.staged_logs import forget_staged
from hudi_core.model.names import FileGroupId, parse_log_file
from hudi_core.services.concurrent_changes import Groups, check_no_plans, check_not_changed
from hudi_core.services.context import provenance
from hudi_core.services.lifecycle import Completion, Run
from hudi_core.services.rewriting.job import Attempt, RewriteJob, commit_metadata
from hudi_core.services.rewriting.new_file_groups import NewFiles
from hudi_core.services.rewriting.other_writers import check_early
from hudi_core.services.rewriting.proof import Rewritten
from hudi_core.services.source.files import CountedRows
from hudi_core.services.source.staged_rows import STAGED, delete_staged
from hudi_core.services.write.checks import check_makes_no_bucket, check_not_hidden, check_same_schema
from hudi_core.services.write.new_rows import target_bytes
from hudi_core.services.write.plan import RowsWork, WritePlan, plan_write
from hudi_core.services.write.proof import prove_write
from hudi_core.services.write.route import RouteUnit, groups_of, new_by_partition, produce_routed, routes_of
from hudi_core.services.write.shard_files import RowsTarget
from hudi_core.services.write.tagging.exchange import tag_rows
from hudi_core.services.write.tagging.tag import Tagged
from hudi_core.services.write.tokens import check_only_one
from hudi_core.services.write.upsert import Upserted, UpsertTarget, write_routed
from hudi_core.storage.one_look import look_again
from hudi_core.timeline.actions.commit import Operation, encode_inflight, to_come
from hudi_core.timeline.actions.replacecommit import TOKEN_KEY
from hudi_core.timeline.actions.write_stats import WriteStat
from hudi_core.timeline.timeline import Timeline
from hudi_core.transaction.claim import Claim
from hudi_core.transaction.reconcile import data_files_of
from hudi_core.view.file_group import DataFile, FileSlice, slice_of_base

log = logging.getLogger(__name__)

_TAGGED: Final = f"{STAGED}/write-"
"""Begins the name of a folder of tagged rows, which ends with the instant."""


class WriteJob(RewriteJob[WritePlan]):
    """The job of a write of rows."""

    changes_rows = requests_itself = True

    def __init__(self, run: Run, work: RowsWork) -> None:
        super().__init__(run)
        self.find_files = partial(data_files_of, by_name=run.context.config.features.log_name_has_delta_commit)
        self.operation = work.operation
        self.action = self.conflicts_as = work.action(run.context)
        self._work = work
        self._groups = Groups()
        self._staged = f"{_TAGGED}{run.instant}"
        self._tagged: list[Tagged] | None = None
        self._rings: Mapping[str, Ring] | None = None
        self._seen = Timeline()

    def plan(self, timeline: Timeline) -> WritePlan:
        """Returns the plan for the table as it is now. A commit with a later instant does not count as known: its base
        files would hide ours.
        """
        plan, self._seen = plan_write(self.context, timeline, self._work), timeline
        known = frozenset(time for time in plan.known if time < self.instant)
        return replace(plan, known=known)

    def file_groups(self, plan: WritePlan) -> frozenset[FileGroupId]:
        return self._groups.all

    def claimed(self, claim: Claim) -> None:
        """Does nothing: no attempt at the instant of a write is continued."""

    def begin(self, plan: WritePlan, held: Claim) -> None:
        """Tags the rows, and makes the instant inflight. Raises ConflictError where an earlier attempt did, and must be
        rolled back, and where a plan is pending on a file group of the rows; the error of check_makes_no_bucket.
        """
        held.check()
        if held.epoch > 1:
            forget_staged(self.storage, self.instant, up_to=held.epoch)
        self._forget_tagged()
        self._make_rings(plan)
        timeline, rows = self.active.load(), self._rows()
        if rows.rows.combines or rows.rows.buckets is not None:
            self._tagged = tag_rows(
                self.context, self.run.engine, self._seen, plan, self._work, rows, self._staged, held.epoch
            )
        if rows.rows.buckets is not None:
            check_makes_no_bucket(self.context, rows.rows.buckets, new_by_partition(rows, self._tagged))
        self._routes = routes_of(self.context, timeline, plan, rows, self._tagged)
        self._groups = groups_of(plan, self._routes, rows.rows.buckets)
        held.check()
        timeline = self.active.load()
        check_no_plans(self.context, timeline, self._groups)
        check_early(self.context, timeline, self.instant, self._groups.all)
        self.to_inflight_once(plan)

    def inflight_content(self, plan: WritePlan) -> bytes:
        """Returns the content of the inflight file: how many rows come to each partition and file group
        (BaseCommitActionExecutor.saveWorkloadProfileMetadataToInflight).
        """
        profile: dict[str, list[WriteStat]] = {}
        updates: Counter[int] = Counter()
        new: Counter[str] = Counter(self._work.row_counts if self._tagged is None else {})
        for tagged in self._tagged or ():
            new.update(tagged.new)
            updates.update({int(number): count for number, count in tagged.in_groups.items()})
        # A bulk_insert of Hudi makes no profile. Others have one for each partition.
        for partition in sorted(self._work.row_counts) if self.operation != Operation.BULK_INSERT else ():
            profile[partition] = [to_come(inserts=new[partition])]
        for number in self._routes.touched:
            group, instant = plan.slices[number].file_group, plan.log_instants[number]
            profile.setdefault(group.partition, []).append(to_come(group.file_id, instant, updates=updates[number]))
        return encode_inflight(self.operation, profile, layout=self.active.layout)

    def execute(self, plan: WritePlan, held: Claim) -> Completion[Rewritten]:
        """Writes the rows. Raises ConflictError where another write has changed the schema since they were counted."""
        context, timeline, rows = self.context, self.active.load(), self._rows()
        known = self._schema_of(timeline) if rows.rows.keys_only else rows.rows.found_schema
        check_same_schema(context, timeline, self.instant, known)
        evolved = rows.rows.evolved_from is not None
        schema = known if not evolved else rows.rows.schema
        attempt = Attempt(
            self,
            self._groups.all,
            held,
            timeline,
            expected_files=self._routes.shards,
            new_schema=schema if evolved else None,
        )
        with attempt.writing():
            results = self._write(plan, rows, attempt, held)
        rewritten = prove_write(
            plan,
            self._routes,
            self._tagged,
            self._work.row_counts,
            results,
            self.instant,
            with_statistics=attempt.with_statistics,
        )
        attempt.keep(rewritten)
        groups = self._groups
        if rows.rows.buckets is not None:
            new_groups = {FileGroupId(stat.partition_path, stat.file_id) for stat in rewritten.stats} - groups.all
            groups = replace(groups, new_buckets=frozenset(map(rows.rows.buckets.place_of_group, new_groups)))
        token = {} if self._work.token is None else {TOKEN_KEY: self._work.token}
        old = {item.file_group: item for item in (plan.slices[number] for number in self._routes.touched)}
        return attempt.completion(
            rewritten,
            commit_metadata(self, rewritten.stats, schema, {**provenance(self.owner), **token}),
            moved=[_moved(file, old, self.instant) for file in rewritten.files],
            new_partitions=plan.new_partitions,
            # Whatever the options compare: no base file is replaced whose rows were not merged.
            preconditions=(
                partial(
                    check_not_changed,
                    context,
                    instant=self.instant,
                    groups=groups,
                    known=plan.known,
                    seen=self._work.seen,
                ),
                partial(check_only_one, context, instant=self.instant, work=self._work),
                partial(check_no_plans, context, groups=self._groups),
                partial(check_not_hidden, context, instant=self.instant, stats=rewritten.stats),
                partial(check_same_schema, context, instant=self.instant, schema=known, evolves=evolved),
            ),
        )

    def abandon(self, plan: WritePlan, held: Claim, error: HudiError) -> None:
        delete_staged(self.storage, self._staged)
        super().abandon(plan, held, error)

    def _forget_tagged(self) -> None:
        """Deletes the tagged rows of writes that died: their instants are no longer pending."""
        folders = [path for path in self.storage.list_folders(STAGED) if path.startswith(_TAGGED)]
        if not folders:
            return
        look_again(self.storage)  # another write requests its instant before it stages rows
        pending = {f"{_TAGGED}{item.requested_time}" for item in self.active.load().pending()}
        for path in folders:
            if path not in pending:
                delete_staged(self.storage, path)

    def _rows(self) -> CountedRows:
        rows = self._work.rows
        if rows is None:
            raise ConfigError(f"{self.action} {self.instant} has no rows", remedy="roll it back, and write again")
        if self._rings is None or rows.rows.buckets is None:
            return rows
        return replace(rows, rows=replace(rows.rows, buckets=replace(rows.rows.buckets, rings=self._rings)))

    def _make_rings(self, plan: WritePlan) -> None:
        """Makes the buckets of new partitions by consistent hashing. A retry finds them, and so does another writer."""
        buckets = self._rows().rows.buckets
        if buckets is not None and buckets.by_hash:
            new = [name for name in plan.partitions if name not in plan.rings]
            self._rings = {**plan.rings, **{name: create_ring(self.storage, name, buckets.count) for name in new}}

    def _schema_of(self, timeline: Timeline) -> AvroSchema:
        return table_schema(self.storage, self.context.config, timeline)

    def _write(self, plan: WritePlan, rows: CountedRows, attempt: Attempt, held: Claim) -> list[Upserted]:
        context, routes = self.context, self._routes
        if not routes.shards:
            delete_staged(self.storage, self._staged)
            return []
        uri, options = context.uri, dict(context.storage_options)
        units = [
            RouteUnit(rows.rows, uri, options, routes, self._staged, name=item.name)
            for item in self._tagged or ()
            if item.name
        ]
        if self._tagged is None:
            units = [RouteUnit(rows.rows, uri, options, routes, self._staged, part=part) for part in rows.parts]
        timeline = self.active.load()
        schema = self._schema_of(timeline) if rows.rows.keys_only else rows.rows.schema
        most = target_bytes(MAX_FILE_BYTES.read(context.options), rows)
        files = NewFiles.of(context, self.instant, schema, most, attempt.requirements)
        policy = MergePolicy.for_table(context.config, context.options)
        # Hudi's row writer, the default of a bulk_insert, takes rows that are marked as deleted for rows.
        takes_marked = self.operation == Operation.BULK_INSERT
        target = UpsertTarget(
            self.operation,
            RowsTarget(uri, options, files, str(uuid4()), None if takes_marked else policy),
            routes,
            plan.slices,
            plan.log_instants,
            context.config.features.log_name_has_delta_commit,
            policy,
            CommittedInstants.of(timeline),
            rows.rows,
            context.config.change_logs,
        )
        written = self.run.engine.exchange(
            produce_routed,
            units,
            partial(write_routed, target),
            shards=routes.shards,
            run_epoch=held.epoch,
            progress=self.run.progress,
        )
        delete_staged(self.storage, self._staged)
        return written


def _moved(file: DataFileRef, old: Mapping[FileGroupId, FileSlice], instant: str) -> SliceChange:
    """Returns the change of the file slice that a new file makes."""
    data = DataFile(file.partition, file.name, file.size)
    if file.is_base:
        after = slice_of_base(data)
        return SliceChange(old.get(after.file_group), after, instant)
    before = old[FileGroupId(file.partition, parse_log_file(file.name).file_id)]
    return SliceChange(before, replace(before, log_files=(*before.log_files, data)), instant)
