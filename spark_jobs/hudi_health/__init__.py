"""What examines a table without writing to it, or tests a storage in a folder of its own: neither Spark nor Airflow.

- ``verbs``: the requests ``doctor``, ``metadata_validate`` and ``probe_store``; where a probe puts a named result.
- ``table``: what hudictl calls with an open table: the doctor, the validation, the times of lookups.
- ``doctor/``: what is wrong with a table, its writers, its lock, its clocks and the Python modules, and what helps.
- ``validate/``: whether the metadata table agrees with the data files and rows, by partition type.
- ``perf``: how long lookups in the metadata table take, beside the same lookups in the storage.
- ``probe``: whether a storage can carry a timeline or a storage lease, by a race of writers. It needs no table, and
  writes only in a folder that it removes.

Elsewhere: how reports are printed is in ``hudi_cli/doctor_commands`` and ``metadata_commands``; when a task fails by
them in ``airflow_hudi/operators/doctor`` and ``metadata``.
"""
