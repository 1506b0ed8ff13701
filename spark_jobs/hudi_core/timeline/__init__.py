"""The active timeline: its instants, the names of its files, and what plans and commits say.

- ``instant``: the states and the actions of an instant; which actions are writes, and which replace file groups; under
  which name an action completes; timeline order.
- ``instant_time``: the digits of a moment in a zone; what an instant or a date means in a query as of a time; the next
  time after all others.
- ``naming``: the names of timeline files in both layouts; which files are foreign; which of several completed files
  counts.
- ``active``: how an instant moves on, by exclusive creates; when it completed; in which order its files are deleted;
  when an empty completed file is an error.
- ``timeline``: which instants make a file slice visible; whether an instant older than the timeline is committed; how
  old a pending one is.
- ``pending_plans``: which file groups pending plans occupy; whether a replacecommit is a clustering; what is done about
  a plan that cannot be read; which writes a pending rollback or restore will roll back.
- ``schemas``: which commit sets the schema of the table's rows; the column ids of schema-on-read, and where a column is
  in an older file.
- ``actions/``: the content of timeline files, with a module for each sort of plan and metadata.
- ``avsc/``: the Avro schemas of those files, as Hudi 0.15 writes them.

Elsewhere: archived instants are in ``history``; a new instant time that no other writer gets, in
``transaction/instant_generator``; how an instant completes only once, in ``transaction/commit``.
"""
