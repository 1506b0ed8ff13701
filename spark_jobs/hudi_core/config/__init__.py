"""Defines options and table properties, with their names, defaults and bounds.

- ``keys``: how the text of an option is read, and under which older names; which texts are no valid number, flag or
  choice. ``options.json`` says what each option means.
- ``options``: every option of this release; what is done about an unknown, misspelt or invalid one; which options a run
  does not use, since its plan was made before.
- ``versions``: which table versions are supported, and what differs between 6, 8 and 9.
- ``table_config``: what ``hoodie.properties`` must hold, when its backup counts, and how it is replaced; which folders
  hold the timeline and the archive; the zone of the timeline.
- ``new_table``: which fields of a request and options of writers say what a new table is, and which exclude each other.
- ``properties``: the text form of a properties file: escapes, comments, continued lines.
- ``concurrency_config``: how long a process waits for a lock; how long a lease is valid; where the lock file is; the
  rhythm of heartbeats; clock skew; how conflicts are judged; after how long a write without a heartbeat counts as
  failed.
- ``rows_config``: how base files are written; memory of a merge and of a sort; options of key generators and buckets;
  options of queries; how many bytes a plan may take.
- ``metadata_config``: which indexes are built, of how many file groups, for which columns; how long a build waits for
  writers.
- ``engine_config``: which engines exist; up to how many units and bytes ``auto`` chooses the local engine; its memory
  and processors; which Python modules are needed.
- ``policy_file``: how a policy is written in YAML; in which line a mistake is; which policy a table has.
- ``services/``: options of compaction, clustering, cleaning and archival.

Elsewhere: which options are secrets is in ``request/secrets``; how large a file may be in ``model/size_limits``; how
often a lock is tried in ``transaction/locks/base``; whether a service is due by a policy in ``services/policy``.
"""
