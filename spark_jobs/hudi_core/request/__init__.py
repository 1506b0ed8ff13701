"""What a run is told and what it reports, as plain values. Needs only the standard library.

- ``services``: which services there are; which need no executors; which conditions of a policy each has.
- ``policy``: in which order services run; when quiet hours begin and end; when a pending instant is overdue; whose
  options come first.
- ``texts``: how durations, sizes, numbers and zones are read; which known name a misspelt one is like; which types the
  fields of JSON must have.
- ``secrets``: which option names and addresses count as secrets; where secrets may be; how the storage options file is
  read.
- ``results``: what a run reports, as one line of JSON; the exit code of several instants or tables; what a long result
  line omits; errors as JSON and back.
- ``java``: which Java, Python and Spark home a Spark driver is started with.

Elsewhere: ``verbs/`` has the requests themselves, ``config/policy_file`` the YAML of a policy; ``services/policy`` says
whether a service is due, ``services/runner`` which pending instants a run covers.
"""
