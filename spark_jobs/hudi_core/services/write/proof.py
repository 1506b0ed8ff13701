"""Proves that a write wrote each row once, before anything is published. rewriting/proof.py does so for compactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hudi_core.metadata_table.records.file_statistics import FileStatistics
from hudi_core.model.names import FileGroupId, LogFileName, parse_base_file, parse_log_file
from hudi_core.model.partition import join
from hudi_core.services.rewriting.new_file_groups import NewFile, prove_files
from hudi_core.services.rewriting.proof import Rewritten, file_of, unproved
from hudi_core.services.write.plan import WritePlan
from hudi_core.services.write.route import Routes, groups_of
from hudi_core.services.write.tagging.tag import Tagged
from hudi_core.services.write.upsert import Upserted


def prove_write(
    plan: WritePlan,
    routes: Routes,
    tagged: Sequence[Tagged] | None,
    row_counts: Mapping[str, int],
    results: Sequence[Upserted],
    instant: str,
    *,
    with_statistics: bool,
) -> Rewritten:
    """Returns the new files, once each row is shown to have come to its file group or to a new one, and no base file to
    have lost a row. The rows are `tagged`, or where None `row_counts` by partition. Raises ExecutionError otherwise.
    """
    groups = groups_of(plan, routes).all
    due: Counter[str] = Counter(row_counts if tagged is None else {})
    for of_shard in tagged or ():
        due.update(of_shard.new)
        for at, count in of_shard.in_groups.items():
            due[plan.slices[int(at)].file_group.partition] += count
    merged: list[NewFile] = []
    new: list[NewFile] = []
    answers = 0
    for shard, result in enumerate(results):
        due.subtract(result.dropped)
        if result.counts is None:
            new += result.files
            continue
        number = routes.touched[shard]
        group = plan.slices[number].file_group
        log_instant = plan.log_instants[number] if number in routes.appended else None
        answers += 1
        merged.append(_proved(group, result, instant, log_instant, with_statistics=with_statistics))
        due[group.partition] -= result.counts.incoming
    if answers != len(groups):
        raise unproved(f"{len(groups)} file groups get rows, and {answers} were written")
    proved = prove_files(new, +due, instant, groups, with_statistics=with_statistics)
    if min(due.values(), default=0) < 0:
        raise unproved(f"more rows were written than came: {dict(due)}")
    statistics: list[FileStatistics] = [item.statistics for item in merged if item.statistics is not None]
    stats = [item.stat for item in merged]
    return Rewritten(
        [*(file_of(stat, is_base=stat.log_version is None) for stat in stats), *proved.files],
        [*stats, *proved.stats],
        [*(statistics if with_statistics else ()), *proved.statistics],
    )


def _proved(
    group: FileGroupId, result: Upserted, instant: str, log_instant: str | None, *, with_statistics: bool
) -> NewFile:
    """Returns the new base or log file of a file group, once its counts agree. `log_instant` is set for a log file.
    Raises ExecutionError otherwise.
    """
    counts, source = result.counts, f"result of {group.file_id} in {group.partition!r}"
    if counts is None or len(result.files) != 1:
        raise unproved(f"the engine wrote {len(result.files)} files", source)
    file, is_base = result.files[0], log_instant is None
    name = parse_base_file(file.stat.name) if is_base else parse_log_file(file.stat.name)
    is_its_own = (file.stat.partition_path, name.file_id) == (group.partition, group.file_id)
    is_named = name.instant in (instant, log_instant)
    became = counts.updated + counts.deleted + counts.kept + counts.inserted + counts.absent
    # A key that the base file has twice counts twice.
    if not is_its_own or not is_named or file.stat.file_size_in_bytes <= 0 or became < counts.incoming:
        raise unproved(f"the engine returned {file.stat.path!r} for {counts}", source)
    due = counts.base + counts.inserted - counts.deleted if is_base else counts.updated
    if file.stat.num_writes != due:
        raise unproved(f"{file.stat.num_writes} rows were written for {counts}", source)
    changes = join(group.partition, str(LogFileName(group.file_id, instant, 1, name.token, cdc=True)))
    if any(path != changes or size <= 0 for path, size in file.stat.cdc_stats):
        raise unproved(f"the engine returned the change logs {file.stat.cdc_stats}", source)
    if with_statistics and (file.statistics is None or file.statistics.file != file_of(file.stat, is_base=is_base)):
        raise unproved("the result has no statistics of the file for the metadata table", source)
    return file
