"""How an action of the data table is written to the metadata table, and how it is rolled back there.

- ``publish``: a service's calls for each action; a commit beside an index build; when a restore drops the table.
- ``commit_updates``: a commit's records by partition type; changed indexes; overtaken writes; widened ranges.
- ``remaining_files``: the other files with rows of a partition after a commit, and those of them that must be read.
- ``staged_logs``: blocks that tasks write before the lock: their place and end; keys in several file groups.
- ``delta_writer``: an instant's log files and deltacommit, after a crash, or beside another attempt's.
- ``base_file``: the form of a base file: its blocks, its bloom filter, the order of keys.
- ``rollback``: how an instant is rolled back (files, command blocks); slow writers; refusal after a compaction.
- ``restore``: the restore to an earlier instant: the order of deletions; how `files` gets the storage's content.
- ``restore_reach``: whether a restore is possible; indexes dropped for it; partitions newer than a commit.
- ``lifetime``: the properties of a new metadata table; the order in which a drop deletes; an interrupted drop.

Elsewhere: ``metadata_table/partitions/registry`` has the records of a clean, restore or rollback;
``metadata_table/row_updates`` updates row-level indexes; ``services/metadata/catch_up`` finds missing actions.
"""
