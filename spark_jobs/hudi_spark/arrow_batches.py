"""How many rows Spark gives a Python worker at a time: a conf of the session, which counts rows and no bytes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from hudi_spark.failure import SPARK_FAILURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

MAX_RECORDS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"


@dataclass(slots=True)
class _Limit:
    """What a session says of itself, and what its running actions request."""

    before: str = ""
    requested: list[int] = field(default_factory=list)

    @property
    def now(self) -> str:
        limit = int(self.before)  # none where it is not positive
        return str(min([*self.requested, limit] if limit > 0 else self.requested)) if self.requested else self.before


_lock = threading.Lock()
_limits: WeakKeyDictionary[SparkSession, _Limit] = WeakKeyDictionary()


@contextmanager
def rows_per_batch(spark: SparkSession, rows: int | None) -> Iterator[None]:
    """Lets a mapInArrow of the action in this block have at most `rows` rows at a time; None changes nothing.

    Spark reads the conf when it makes the tasks of a stage (MapInBatchExec.doExecute), with adaptive execution when the
    stages before have ended: it is set for the whole action. The tables of a batch share the session between threads:
    the smallest number counts while several are requested, and the last action restores the session's own. What else
    runs in the session meanwhile gets more and smaller batches. Raises what a session raises.
    """
    if rows is None:
        yield
        return
    with _lock:
        limit = _limits.setdefault(spark, _Limit())
        if not limit.requested:
            limit.before = str(spark.conf.get(MAX_RECORDS))
        limit.requested.append(rows)
    try:
        with _lock:
            spark.conf.set(MAX_RECORDS, limit.now)
        yield
    finally:
        with _lock:
            limit.requested.remove(rows)
            try:
                spark.conf.set(MAX_RECORDS, limit.now)
            except SPARK_FAILURES as error:  # the action's own end counts
                log.warning("%s could not be set to %s again: %s", MAX_RECORDS, limit.now, error)
