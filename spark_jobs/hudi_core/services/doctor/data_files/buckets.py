"""Finds buckets of a bucket index that have several file groups, and the rule on them.

A bucket has one file group in a partition: Hudi looks keys up there. A second one comes of a task that ran twice
(hudi#11527), of two writers that both made it (hudi#7838), or of a second `bulk_insert` (hudi#10894; 0.15.0 refuses
every later write of the partition, an insert_overwrite too).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hudi_core.config.keygen_config import COMBINE_INSERTS, INDEX_TYPE, NUM_BUCKETS
from hudi_core.errors import FormatError, MetadataUnavailableError, StorageNotFoundError
from hudi_core.filegroup.write.buckets import are_buckets, bucket_of
from hudi_core.model.partition import join
from hudi_core.services.context import TableContext
from hudi_core.services.doctor.finding import Counted, Finding, Observations, named_files
from hudi_core.timeline.timeline import Timeline


def find_shared_buckets(context: TableContext, timeline: Timeline) -> Counted[str]:
    """The paths of file groups (partition and file id) that share a bucket of their partition with others.

    Those of pending writes, and those that were replaced, do not count. Files are listed as queries list them, so that
    a metadata table spares the listing of the storage. Nothing where the file groups of a partition are no buckets, nor
    where the list cannot be read, which has a rule of its own. Memory: the file groups of one partition.
    """
    found: Counted[str] = Counted()
    committed = timeline.commits()
    try:
        view = context.view(timeline)
        for partition in view.partitions():
            ids = [
                item.file_group.file_id
                for item in view.latest_merged_slices(partition)
                if committed.contains_or_before_start(item.base_instant)
            ]
            if not are_buckets(ids):
                continue
            by_bucket: defaultdict[int, list[str]] = defaultdict(list)
            for file_id in ids:
                by_bucket[bucket_of(file_id)].append(file_id)
            for sharing in by_bucket.values():
                for file_id in sharing if len(sharing) > 1 else ():
                    found.add(join(partition, file_id))
    except (FormatError, MetadataUnavailableError, StorageNotFoundError):
        return found
    return found


def shared_buckets(observed: Observations) -> Iterator[Finding]:
    """Buckets with several file groups."""
    shared = observed.shared_buckets
    if shared.count:
        yield Finding(
            "bucket_of_several_groups",
            "error",
            "several file groups of one partition are the same bucket: "
            f"{named_files(shared.first, shared.count, 'file group')}; queries read the rows of all of them, and "
            "Hudi's writers refuse to write there (`Find multiple files at partition path`)",
            f"stop the writers, and write each of these partitions again: hudictl read {observed.uri} --where … "
            f"--output rows.parquet; then: hudictl insert-overwrite {observed.uri} --source rows.parquet --option "
            f"{INDEX_TYPE.name}=BUCKET --option {NUM_BUCKETS.name}=… --option {COMBINE_INSERTS.name}=true. Give "
            "the writers' number of buckets; of several rows of a key the one with the greatest ordering value stays",
            path=shared.first[0],
        )
