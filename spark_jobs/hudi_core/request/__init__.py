"""What a run is told and what it reports, as plain values; it needs the standard library alone.

- ``services``: which services there are; which need no executors; which conditions of a policy each has.
- ``policy``: in which order services run; when quiet hours begin and end; when a pending instant is overdue; whose
  options come first.
- ``texts``: how durations, sizes, numbers and zones are read; which known name a misspelt one is like; of which types
  the fields of JSON must be.
- ``secrets``: which option names and addresses count as secrets; where secrets may be; how the storage options file is
  read.
- ``results``: what a run reports, as one line of JSON; the exit code of several instants or tables; what a long result
  line omits; errors as JSON and back.
- ``java``: which Java, Python and Spark home a Spark driver is started with.

Elsewhere: the requests themselves are in ``verbs/``; the YAML of a policy in ``config/policy_file``; whether a service
is due in ``services/policy``; which pending instants a run covers in ``services/runner``.
"""
