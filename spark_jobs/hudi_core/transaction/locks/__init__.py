"""The lock of a table, by which writers of Hudi and this engine exclude each other, and when it is free.

- ``registry``: which lock a table has, by Hudi's options; what holds where none is configured, and which signs of
  another writer are a warning or refuse the run; the lock's name where Hudi derives it from the table's address.
- ``base``: what every lock promises; how often it is tried, and what the error says; when a lease counts as lost.
- ``filesystem``: the lock file: when a dead or silent holder's is free, or one that is too old; how one process alone
  removes it.
- ``storage_lease``: the lease in the table's storage: when it is over, and by how much clocks may differ; what a write
  comes to whose answer was lost.
- ``zookeeper``: the lock in ZooKeeper: whose turn it is, and that a dead holder's is free when its session ends.
- ``dynamodb``: the lock in DynamoDB: that a dead holder's is free when it did not change for a whole lease; how its
  table is created.

Elsewhere: how long a lock is waited for, and a lease or session is, and where the lock file lies, is in
``config/concurrency_config``; whether a process is provably dead in ``transaction/owner``.
"""
