"""The table services of the metadata table: when each service is due, its input, and the order of the services.

- ``table_services``: the order; failed deltacommits; when the table is cleaned, deleted file slices; archived instants.
- ``compaction``: when a compaction is due, and its log files; pending and refused plans; base files of dead attempts.
- ``merge_group``: how one file group becomes a new base file: the records that are copied, and those that are merged.

Elsewhere: ``metadata_table/partitions/registry`` says by which rule two records of one key merge;
``metadata_table/write/rollback`` rolls an instant back; ``services/metadata/maintain`` runs these services.
"""
