"""What this provider's tasks fail with. All are HudiErrors: they name the table or the file, and the remedy."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException

from hudi_core.errors import ConfigError, ConflictError, ExecutionError, HudiError, StorageError


class HudiSensorFailed(HudiError, AirflowException):
    """A sensor's wait ended in an error; an AirflowException, so that soft_fail and never_fail apply."""


class HudiInstantNotFound(ConfigError):
    """The instant that a task is to run is not on the timeline, or one of another action: no retry finds it."""


class HudiInputRefused(ConfigError):
    """The job refused its input, for the reason and with the remedy that it named: no retry changes that."""


class HudiInstantBusy(ConflictError):
    """Another process ran the instant for longer than the task may wait; safe to retry."""


class HudiNotificationFailed(HudiError):
    """A webhook did not take a message."""


class HudiTableUnreadable(StorageError):
    """Tables that a task has to look at cannot be read now; a retry looks again."""


class HudiConnectionUnreadable(StorageError):
    """A secrets backend cannot be asked for a connection now; a retry asks again."""


class HudiJobFailed(ExecutionError):
    """The Spark job ended and the instant is not completed. A retry takes the instant over."""


class HudiJobKilled(HudiJobFailed):
    """The task was stopped, and stopped its Spark job."""
