"""The format engine: no Spark, no Airflow.

- ``driver``: which part of a request is done here, and which is left to Spark; which errors are of this process alone.
- ``table``: one open table as a caller sees it: open, read, list, plan, run; with which options a request runs.
- ``errors``: every error, its exit code and its usual remedy; what messages mask, escape and shorten; whether another
  attempt may succeed; when a wait is logged.
- ``frozen``: how the dataclasses are made that never change.

The folders, by layer; a module imports only from layers below its own:

- ``verbs/``: one class for each verb: its fields, whether there is anything to do, how much that is, its run.
- ``services/``: a folder for each table service; the one lifecycle of an instant; what is due; the engine of a plan.
- ``query/``: how queries are planned and read: snapshot, as of a time, incremental, change data; ``show``.
- ``index/``: which partitions, files and row groups a predicate rules out; which file groups may hold its keys.
- ``metadata_table/``: its partition types and records, lookups, updates, initialization, compaction and cleaning.
- ``transaction/``: who runs an instant, which lock a table has, what is a conflict, new instant times, the one commit.
- ``filegroup/``: how a file slice is read, which version of a row wins, how new files and markers are written.
- ``view/``: which partitions and files a table has; which slices of a file group a query or a service reads.
- ``history/``: the archived timeline: log files of layout 1, Parquet files of layout 2.
- ``timeline/``: instants and the names of their files in both layouts; what plans and commits hold; schemas of commits.
- ``config/``: options with their defaults and bounds; the properties of a table; what each table version has.
- ``engine/``: how units are run here, in threads or processes; how rows are exchanged; units and results as text.
- ``storage/``: the files of a table: local, on S3, elsewhere; what each call promises; what a step reads once.
- ``codec/``: bytes of Avro, log files, HFile, Parquet, ORC, Bloom filters and gzip. It sees no storage.
- ``expr/``: predicates: how SQL text becomes one, and for which rows, or ranges of values, it holds.
- ``request/``: which services there are, policies, secrets, texts that people give, and results as JSON.
- ``model/``: names of files and columns, which partition paths are safe, how large a file may be. No I/O.
"""

VERSION = "0.1.0"
"""Written here, not looked up: the job zip carries no distribution metadata."""
