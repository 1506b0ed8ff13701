"""The archived timeline: which of its files count, what they say of an instant, and how instants are added.

- ``archived``: what the archive answers in either layout; where the active timeline begins, so that an older write can
  only be in the archive; when a write completed, wherever it is.
- ``archived_instant``: what a record of the archive has of an instant, in layout 1 and in layout 2.
- ``manifest``: which files of layout 2 count; how a new snapshot of them is published; what happens when two processes
  archive at once.
- ``lsm``: how files of layout 2 are read; an instant that is in two of them; a file that is missing.
- ``lsm_writer``: how instants are added in layout 2; which files are merged into one; which snapshots and files are
  deleted.
- ``log_archive``: which files and blocks of layout 1 count; a block that is cut; a merge that is not finished.
- ``archiving``: how many instants an archival takes at once; how they are added in layout 1; how an unfinished merge of
  Hudi 0.15 is ended or rolled back.

Elsewhere: ``services/archive/planner`` says which instants are archived, and what keeps them; ``services/archive/job``
says what an interrupted archival left; ``timeline/active`` says in which order files leave the timeline.
"""
