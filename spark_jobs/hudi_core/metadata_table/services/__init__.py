"""The table services of the metadata table: when each is due, what it takes, and in which order they run.

- ``table_services``: their order; which failed deltacommits are rolled back; when the metadata table is cleaned, and
  which slices go; which of its instants are archived.
- ``compaction``: when a compaction is due, and which log files it takes; how a pending one is finished, and which plan
  is refused; which base files of dead attempts go.
- ``merge_group``: how one file group becomes a new base file: which records pass as they are, and which are merged.

Elsewhere: by which rule two records of one key merge is in ``metadata_table/partitions/registry``; how an instant is
rolled back in ``metadata_table/write/rollback``; who runs these services in ``services/metadata/maintain``.
"""
