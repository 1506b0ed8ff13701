"""The triggers, which wait and look in the triggerer.

- ``wait``: a sensor's wait: which failed looks are repeated and which end it; when the source of a write exists.
- ``timeline_events``: when new or still pending instants make an asset event; the contents of the event; where a
  watcher continues after a restart.
- ``shared_timeline``: which triggers share one listing, how old a look may be, and how many threads a storage gets.

Elsewhere: the conditions are in ``conditions/``; the errors after which another look may succeed in ``task_fate``; the
events that a task itself makes in ``assets``.
"""
