"""The lock of a table, by which writers of Hudi and this engine exclude each other, and when it is free.

- ``registry``: the lock that a table has, by Hudi's options; the rules without a configured lock: which signs of
  another writer are a warning or refuse the run; the lock's name where Hudi derives it from the table's address.
- ``base``: what every lock promises; how often a lock is tried, and what the error says; when a lease counts as lost.
- ``filesystem``: the lock file: when the lock of a dead or silent holder is free; how only one process removes it.
- ``storage_lease``: the lease in the table's storage: when it is over, how far clocks may differ, lost answers.
- ``zookeeper``: the lock in ZooKeeper: the order of contenders; a dead holder's lock is free when its session ends.
- ``dynamodb``: the lock in DynamoDB: a dead holder's lock is free after a lease without change; the table's creation.

Elsewhere: ``config/concurrency_config`` says how long a process waits for a lock, how long a lease or session is, and
where the lock file is; ``transaction/owner`` says whether a process is provably dead.
"""
