"""The conditions that end the wait of a sensor, in the worker or in the triggerer; and which instant a task takes.

- ``condition``: waits for an instant in some state, or until nothing is pending for too long; what "completed after" a
  time means, and how it is written; which pending instant a run takes, and which one a try of the task planned.
- ``writes``: waits for a commit or for partitions; which commits are writes, and not compactions or clusterings; when a
  partition counts as removed.

Elsewhere: the wait for an overwrite's source is in ``triggers/wait``; the contents of asset events in
``triggers/timeline_events``; the completion time of an instant of layout 1 in ``timeline_reader``.
"""
