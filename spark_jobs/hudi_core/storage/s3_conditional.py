"""Conditional writes on S3: create if absent, replace if unchanged, and what to make of an answer that got lost.
Whether a storage keeps what these promise: probe.py.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any, cast

from fsspec.asyn import sync

from hudi_core.errors import (
    ConfigError,
    HudiError,
    StorageConflictError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
)
from hudi_core.storage.failures import LIBRARY_FAILURES, service_code, to_storage_error, translated

_TAG = "airflow-hudi-create"
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1
_CONDITIONS = frozenset({"IfMatch", "IfNoneMatch"})


Check = Callable[[int], None]


class S3Conditional:
    """Objects of one s3fs file system. `target` is s3fs's own name of an object, `path` the one for messages."""

    def __init__(self, fs: Any, uri: str) -> None:
        self._fs = fs
        self._uri = uri
        self._checked = False

    def read(self, target: str, *, path: str, check: Check) -> tuple[bytes, str]:
        """The content and its ETag, of one answer. `check` raises for too many bytes, before they are read."""
        with translated(path, self._uri, LIBRARY_FAILURES):
            data, etag = sync(self._fs.loop, _get, self._fs, target, check)
        return bytes(data), str(etag)

    def put(self, target: str, data: bytes, *, path: str, version: str | None) -> str:
        """One PUT with `If-None-Match: *` (None) or `If-Match`; returns the ETag. The errors are those of
        Storage.write_if. A client that loses the answer sends the PUT again, and the condition fails because of its own
        object. So every attempt is tagged, and the tag of the stored object decides: after a failed conditional PUT the
        outcome is unknown, whatever the client raises (botocore's errors of connections are no OSError). A 409 (another
        conditional write is in progress) is tried again.
        """
        self._check_client(path)
        tag = uuid.uuid4().hex
        condition = {"mode": "create"} if version is None else {"IfMatch": version}
        # From twice this size on s3fs sends parts: it gives them no If-Match then, and no ETag back.
        part_bytes = len(data) + 1
        for attempt in range(_ATTEMPTS):
            try:
                answer = self._fs.pipe_file(target, data, chunksize=part_bytes, Metadata={_TAG: tag}, **condition)
            except LIBRARY_FAILURES as error:
                etag = self._outcome(target, path, tag, version, error)
                if etag is not None:
                    return etag
            else:
                return _etag(answer)
            time.sleep(_PAUSE_SECONDS * 2**attempt)
        raise StorageError(
            f"{self._uri} answered {_ATTEMPTS} times that another conditional write is under way", path=path
        )

    def _outcome(self, target: str, path: str, tag: str, version: str | None, error: Exception) -> str | None:
        """The ETag when our attempt made the object after all, None for another attempt; any other outcome raises."""
        code = service_code(error)
        head = self._head(target, path, error)
        if head is not None and head.get("Metadata", {}).get(_TAG) == tag:
            return _etag(head)
        if version is None:
            if head is None and code == "ConditionalRequestConflict":
                return None
            if head is not None or _is_precondition(error, code):  # there now, or when the store answered
                raise StorageExistsError(f"the file exists already in {self._uri}", path=path) from error
            raise to_storage_error(error, path, self._uri) from error
        if head is None or _etag(head) != version or _is_precondition(error, code):
            raise StorageConflictError(f"the file has another version in {self._uri}, or is gone", path=path) from error
        if code == "ConditionalRequestConflict":
            return None
        raise to_storage_error(error, path, self._uri) from error

    def _head(self, target: str, path: str, error: Exception) -> dict[str, Any] | None:
        """The object's tags and ETag; None when it is absent. Raises the write's own error when that is unknown."""
        bucket, key, _ = self._fs.split_path(target)
        try:
            return cast("dict[str, Any]", self._fs.call_s3("head_object", Bucket=bucket, Key=key))
        except FileNotFoundError as missing:
            if not isinstance(to_storage_error(missing, path, self._uri), StorageNotFoundError):
                raise to_storage_error(error, path, self._uri) from error
            return None
        except LIBRARY_FAILURES:
            raise to_storage_error(error, path, self._uri) from error

    def _check_client(self, path: str) -> None:
        """Refuses a client without conditions: s3fs would drop the argument, and so overwrite."""
        if self._checked:
            return
        with translated(path, self._uri, LIBRARY_FAILURES):
            known = self._fs.s3.meta.service_model.operation_model("PutObject").input_shape.members
        if not set(known) >= _CONDITIONS:
            raise ConfigError(
                "the installed botocore knows no conditional writes", path=path, remedy="install botocore 1.36 or later"
            )
        self._checked = True


async def _get(fs: Any, target: str, check: Check) -> tuple[bytes, str]:
    bucket, key, _ = fs.split_path(target)
    answer = await fs._call_s3("get_object", Bucket=bucket, Key=key)
    try:
        check(int(answer.get("ContentLength", 0)))
        return await answer["Body"].read(), _etag(answer)
    except (OSError, HudiError):
        raise
    except Exception as error:
        raise OSError(f"the object's content broke off: {error}") from error
    finally:
        answer["Body"].close()


def _etag(answer: Any) -> str:
    etag = answer.get("ETag") if isinstance(answer, dict) else None
    if not isinstance(etag, str) or not etag:
        raise StorageError("the S3 client returns no ETag", remedy="install s3fs 2025.7 or later")
    return etag


def _is_precondition(error: Exception, code: str | None) -> bool:
    return isinstance(error, FileExistsError) or code in ("PreconditionFailed", "412")
