"""Tags the rows of a write: in which file group a key is, and which of the rows with one key stays.

- ``exchange``: which units read which keys, in how many shards; what must come out of it.
- ``lookup``: which base files need not be opened for some keys, by the indexes of the metadata table.
- ``keys``: the keys of base files, of log files that have their own, and of the rows that come.
- ``tag``: what a shard makes of them: the newest row of each key, with its file groups.
- ``places``: to which of its key's places a row goes, and which rows of base files have the key; which rows leave a
  partition for another.

Elsewhere: ``write/log_keys`` says which log files may have keys that no base file has.
"""
