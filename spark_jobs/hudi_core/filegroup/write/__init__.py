"""Writes keys of new rows, base files, log files and markers of a file group, and rolls them back.

- ``key_generator``: the record key and the partition path of a new row; whether a key has the name of its field in it;
  which key generators and which types of columns are refused.
- ``partition_times``: times in partition paths: their formats, units and zones; whether a table's paths have timestamps
  as numbers or as local time of Spark SQL.
- ``buckets``: the bucket of a key; whether file groups are buckets; which bucket indexes are refused.
- ``hashing_metadata``: which hashes belong to which file group by consistent hashing; how a new partition begins.
- ``markers``: where a data file is announced before it is written; when a late task deletes its file; how a timeline
  server's list of markers is read.
- ``base_file_writer``: a new base file: the bloom filter and the key range in its footer; in which order keys compare.
- ``log_file``: a log file of new rows; when a block is full.
- ``change_log``: which changes of rows a table with change logs records, and with what of each row.
- ``log_copy``: a log file of copied records and deletes; when a block is full; the order of records with positions.
- ``delete_entries``: which ordering values the deletes in a log file have; which marked rows stay rows.
- ``rollback_files``: which files of a plan a rollback may delete; the log file of its command block, also when the
  rollback is run again; log files without a byte.

Elsewhere: which files a rollback removes is in ``services/rollback/files_to_roll_back``; which files of lost attempts
are deleted, in ``transaction/reconcile``; when a new file is full, in ``services/rewriting/new_file_groups``.
"""
