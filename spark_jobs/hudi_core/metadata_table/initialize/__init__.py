"""The first build of the metadata table and of its partitions, under the table lock or beside writers.

- ``initialize``: when the metadata table or a partition may begin, in which steps it is built, which data files it
  lists at its start, and when a commit that came meanwhile makes it fail.
- ``target``: the files of a new partition: the first log file of a group, which base files of other attempts go, how
  the partition is listed; file groups that are added later.
- ``exchange``: how an index is made by tasks: which files go to one task, and which row or key is refused.
- ``indexing``: an index that is built beside writers: from when on they update it and readers count it, what of an
  earlier attempt is removed, when a build is lost, and the heartbeat of its deltacommit.

Elsewhere: how many file groups an index has is in ``metadata_table/partitions/row_level``, or in ``protocol`` there;
the instant of a build in ``metadata_table/instants``; whether a build is whole in ``services/indexing/build``.
"""
