"""What waits and looks in the triggerer.

- ``wait``: a sensor's wait: which failed looks are repeated and which end it; when the source of an overwrite is there.
- ``timeline_events``: when an asset event is made of new or still pending instants; what it holds; from where a watcher
  goes on after a restart.
- ``shared_timeline``: which triggers share one listing, how old a look may be, and how many threads a storage gets.

Elsewhere: when a condition holds is in ``conditions/``; which errors may pass in ``task_fate``; the events that a task
itself makes in ``assets``.
"""
