"""When the wait of a sensor, here or in the triggerer, is over; and which instant a task takes.

- ``condition``: an instant in some state; that nothing is pending for too long; what "completed after" a time means,
  and how it is written; which pending instant a run takes, and which one a try of the task planned.
- ``writes``: that a commit or partitions arrived; which commits are writes, and no compactions or clusterings; when a
  partition counts as taken away again.

Elsewhere: the wait for an overwrite's source is in ``triggers/wait``; what an asset event is about in
``triggers/timeline_events``; when an instant of layout 1 completed in ``timeline_reader``.
"""
