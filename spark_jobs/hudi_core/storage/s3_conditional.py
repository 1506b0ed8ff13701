"""A table on S3, with its timeline, by conditional writes: create if absent, replace if unchanged, and how to find the
outcome when an answer got lost. probe.py tests whether a storage keeps these promises.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

from fsspec.asyn import sync

from hudi_core.errors import (
    ConfigError,
    HudiError,
    StorageConflictError,
    StorageError,
    StorageExistsError,
    StorageNotFoundError,
    UnsupportedError,
)
from hudi_core.model.partition import check_relative_path
from hudi_core.model.size_limits import NO_OPTIONS, SizeLimits
from hudi_core.storage.base import FileInfo
from hudi_core.storage.failures import LIBRARY_FAILURES, service_code, to_storage_error
from hudi_core.storage.fsspec_store import FsspecStorage, file_info, protocols_of

_TAG = "airflow-hudi-create"
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1
_CONDITIONS = frozenset({"IfMatch", "IfNoneMatch"})
_VERSION_SUFFIX = "?versionId="


def fsspec_storage(fs: Any, root: str, uri: str, limits: SizeLimits = NO_OPTIONS) -> FsspecStorage:
    """Returns the storage over a file system of fsspec. An exclusive create is proven on S3 only: elsewhere, fsspec's
    own `x` mode shows partial content or races.
    """
    return (S3Storage if protocols_of(fs) & {"s3", "s3a"} else FsspecStorage)(fs, root, uri, limits)


class S3Storage(FsspecStorage):
    """A storage over an s3fs file system. `target` is s3fs's own name of an object, `path` the name in messages."""

    supports_exclusive_create = True
    supports_conditional_write = True
    _checked = False
    _bucket_seen = False

    def stat(self, path: str) -> FileInfo:
        """Sends one HEAD. s3fs lists as well where the object is absent: it may be a folder."""
        target = self._file(path)
        if not self._bucket_seen:
            return self._first_stat(path)
        bucket, key, _ = self._fs.split_path(target)
        with self._calls(path):
            head = self._fs.call_s3("head_object", Bucket=bucket, Key=key)
        return file_info(path, {**head, "size": head["ContentLength"]})

    def remove(self, path: str) -> None:
        with suppress(StorageNotFoundError), self._calls(path):  # some stores answer so where S3 says that it is done
            self._remove(self._file(path))

    def _first_stat(self, path: str) -> FileInfo:
        """Asks by s3fs, whose listing distinguishes a missing bucket from a missing object."""
        try:
            found = super().stat(path)
        except StorageNotFoundError:
            self._bucket_seen = True
            raise
        self._bucket_seen = True
        return found

    def _children(self, folder: str, *, deep: bool = False) -> list[tuple[str, Mapping[str, Any]]]:
        """Sends one request for a thousand names. s3fs sends more for an empty folder: it may be an object."""
        check_relative_path(folder, source=self.uri)
        bucket, key, _ = self._fs.split_path(self._target(folder))
        prefix = f"{key}/" if key else ""
        request = {"Bucket": bucket, "Prefix": prefix, **({} if deep else {"Delimiter": "/"})}
        found: list[tuple[str, Mapping[str, Any]]] = []
        with self._calls(folder):
            while True:
                page = self._fs.call_s3("list_objects_v2", **request)
                names = [
                    (item["Key"], {**item, "type": "file", "size": item["Size"]}) for item in page.get("Contents", ())
                ]
                names += [
                    (item["Prefix"].rstrip("/"), {"type": "directory"}) for item in page.get("CommonPrefixes", ())
                ]
                # The folder itself may have an object, which goes with it.
                found += [
                    (self._relative(f"{bucket}/{name}"), info)
                    for name, info in names
                    if name.startswith(prefix) and (deep or name != prefix)
                ]
                if not page.get("IsTruncated"):
                    self._bucket_seen = True
                    return found
                request["ContinuationToken"] = page["NextContinuationToken"]

    def create_exclusive(self, path: str, data: bytes) -> None:
        self.write_if(path, data, version=None)

    def read_versioned(self, path: str) -> tuple[bytes, str]:
        """Returns the content and its ETag, from one answer."""
        target = self._file(path)
        with self._calls(path):
            data, etag = sync(self._fs.loop, _get, self._fs, target, partial(self.limits.check_file, path))
        return bytes(data), str(etag)

    def write_if(self, path: str, data: bytes, *, version: str | None) -> str:
        """Sends one PUT with `If-None-Match: *` (None) or `If-Match`. A client that loses the answer sends the PUT
        again, and the condition fails because of its own object. So every attempt is tagged, and the tag of the stored
        object decides. After a failed conditional PUT the outcome is unknown, whatever the client raises (botocore's
        errors of connections are no OSError). A 409 (another conditional write is in progress) is tried again.
        """
        target, content = self._file(path), bytes(data)
        self._check_client(path)
        tag = uuid.uuid4().hex
        condition = {"mode": "create"} if version is None else {"IfMatch": version}
        # From twice this size on, s3fs sends parts, without If-Match, and returns no ETag.
        part_bytes = len(content) or 1
        for attempt in range(_ATTEMPTS):
            try:
                answer = self._fs.pipe_file(target, content, chunksize=part_bytes, Metadata={_TAG: tag}, **condition)
            except LIBRARY_FAILURES as error:
                etag = self._outcome(target, path, tag, version, error)
                if etag is not None:
                    return etag
            else:
                return _etag(answer)
            time.sleep(_PAUSE_SECONDS * 2**attempt)
        raise StorageError(
            f"{self.uri} answered {_ATTEMPTS} times that another conditional write is under way", path=path
        )

    def _target(self, path: str) -> str:
        if _VERSION_SUFFIX in path:
            message = f"s3fs takes {_VERSION_SUFFIX!r} in a name for a version"
            raise UnsupportedError(message, path=path, remedy="rename the partition value")
        return super()._target(path)

    def _outcome(self, target: str, path: str, tag: str, version: str | None, error: Exception) -> str | None:
        """Returns the ETag when our attempt made the object after all, None for another attempt. Otherwise raises."""
        code = service_code(error)
        head = self._head(target, path, error)
        if head is not None and head.get("Metadata", {}).get(_TAG) == tag:
            return _etag(head)
        if version is None:
            if head is None and code == "ConditionalRequestConflict":
                return None
            if head is not None or _is_precondition(error, code):  # there now, or when the store answered
                raise StorageExistsError(f"the file exists already in {self.uri}", path=path) from error
            raise to_storage_error(error, path, self.uri) from error
        if head is None or _etag(head) != version or _is_precondition(error, code):
            raise StorageConflictError(f"the file has another version in {self.uri}, or is gone", path=path) from error
        if code == "ConditionalRequestConflict":
            return None
        raise to_storage_error(error, path, self.uri) from error

    def _head(self, target: str, path: str, error: Exception) -> dict[str, Any] | None:
        """Returns the object's tags and ETag; None if absent. Raises the write's own error when that is unknown."""
        bucket, key, _ = self._fs.split_path(target)
        try:
            return cast("dict[str, Any]", self._fs.call_s3("head_object", Bucket=bucket, Key=key))
        except FileNotFoundError as missing:
            if not isinstance(to_storage_error(missing, path, self.uri), StorageNotFoundError):
                raise to_storage_error(error, path, self.uri) from error
            return None
        except LIBRARY_FAILURES:
            raise to_storage_error(error, path, self.uri) from error

    def _check_client(self, path: str) -> None:
        """Refuses a client without conditions: s3fs would drop the argument, and so overwrite."""
        if self._checked:
            return
        with self._calls(path):
            known = self._fs.s3.meta.service_model.operation_model("PutObject").input_shape.members
        if not set(known) >= _CONDITIONS:
            raise ConfigError(
                "the installed botocore knows no conditional writes", path=path, remedy="install botocore 1.36 or later"
            )
        self._checked = True


async def _get(fs: Any, target: str, check: Callable[[int], None]) -> tuple[bytes, str]:
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
