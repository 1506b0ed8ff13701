"""Options of the doctor."""

from __future__ import annotations

from hudi_core.config.keys import ConfigKey, whole_number

STUCK_MINUTES: ConfigKey[int] = ConfigKey(
    "airflow_hudi.doctor.stuck_minutes",
    60,
    whole_number(0, 10**6),
    "minutes after which a pending instant that nobody works on counts as stuck; one whose owner is provably dead does at once",
)

DOCTOR_KEYS: tuple[ConfigKey[object], ...] = (STUCK_MINUTES,)
"""Every option of this module."""
