"""Moves old instants from the timeline to the archive.

- ``planner``: which instants are archived, how many commits stay, and what keeps an instant: a pending
  instant, a savepoint, orphans, replaced file groups that are still there, the next compaction, the metadata table.
- ``listing``: which files are orphans of instants that never completed; which files of replaced file groups are still
  there; the size of a log file by the commits that wrote to it.
- ``job``: the order of writing the archive and removing instants, so that a kill does no harm; what an interrupted
  archival left; whether orphans stop an archival; which claims, markers and staged records go with an instant.

Elsewhere: files of the archive are written by ``history/archiving`` (layout 1) and ``history/lsm_writer`` (layout 2);
the archival of the metadata table is in ``metadata_table/services/table_services``.
"""
