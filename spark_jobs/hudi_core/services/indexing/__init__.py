"""Builds an index of the metadata table while writers go on.

- ``planner``: which indexes the options name, and how they are defined; at which instant an indexing is planned,
  and up to which write; which indexes are built or planned already.
- ``build``: how many file groups an index must have, and which listed indexes have another number; which actions
  completed since the snapshot and are not in the index; which files go when a writer has built the index itself.
- ``job``: which writes a build waits for; how often a build is repeated, and when under the table lock;
  when a listed index is taken off the list to be resized; when the index is published.

Elsewhere: what a listed index may lack is in ``metadata_table/read/completeness``; which writers may be alive
in ``services/waiting``; how an index or a pending indexing is dropped in ``services/metadata/index_drop``.
"""
