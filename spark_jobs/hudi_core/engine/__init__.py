"""Runs the units of a plan as tasks, and exchanges rows between tasks.

- ``protocol``: what every engine promises: one result of each unit, in their order; which attempt a task is; which
  fields all units share.
- ``serializer``: the form in which a value travels, which types may, and that a value of another form is refused.
- ``local``: units in threads or processes of this machine: which attempts are repeated, what the first failure stops,
  a process that is killed.
- ``exchange``: the rows of an exchange: their form, when they go to temporary files, how many files merge at once.

Elsewhere: which engine runs a plan, and from how many bytes in processes, is in ``services/engine_choice``; Spark as an
engine in ``hudi_spark/engine``; whether executors have the modules that they need in ``hudi_spark/probe``; which
failures are transient in ``errors``.
"""
