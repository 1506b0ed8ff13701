"""Examines a table without writing to it, and tests a storage in its own folder. It uses neither Spark nor Airflow.

- ``verbs``: the requests ``doctor``, ``metadata_validate`` and ``probe_store``; where a probe puts a named result.
- ``table``: the functions that hudictl calls with an open table: the doctor, the validation, the times of lookups.
- ``doctor/``: finds what is wrong with a table, its writers, its lock, its clocks and the Python modules, and the fix.
- ``validate/``: checks whether the metadata table agrees with the data files and rows, by partition type.
- ``perf``: measures lookups in the metadata table, and the same lookups in the storage.
- ``probe``: finds out whether a storage can carry a timeline or a storage lease, by a race of writers. It needs no
  table, and writes only in a folder that it removes.

Elsewhere: the printing of reports is in ``hudi_cli/doctor_commands`` and ``metadata_commands``; the rules by which a
report fails a task in ``airflow_hudi/operators/doctor`` and ``metadata``.
"""
