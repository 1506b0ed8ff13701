"""The first build of the metadata table and of its partitions, under the table lock or beside writers.

- ``initialize``: when a build may begin, its steps, the data files listed at the start, commits that came meanwhile.
- ``target``: the files of a new partition: first log files, other attempts' base files, listing; later file groups.
- ``exchange``: how tasks make an index: which files go to one task, and which row or key is refused.
- ``indexing``: an index that is built beside writers: when writers begin to update it and readers to use it, what is
  removed of an earlier attempt, when a build is lost, and the heartbeat of its deltacommit.

Elsewhere: ``metadata_table/partitions/row_level``, and ``protocol`` there, say how many file groups an index has;
``metadata_table/instants`` has the instant of a build; ``services/indexing/build`` says whether a build is whole.
"""
