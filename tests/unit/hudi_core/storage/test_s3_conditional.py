from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, HTTPClientError
from botocore.parsers import ResponseParserError

from hudi_core.errors import ConfigError, StorageConflictError, StorageError, StorageExistsError, StorageNotFoundError
from hudi_core.storage.s3_conditional import S3Storage


class Refusal(OSError):
    """An error as s3fs raises it: the answer of the service is at its cause."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.response = {"Error": {"Code": code}}


CONNECTIONS: dict[str, Exception] = {
    "closed": ConnectionClosedError(endpoint_url="https://me:hunter2@s3/b"),
    "refused": EndpointConnectionError(endpoint_url="https://me:hunter2@s3/b"),
    "client": HTTPClientError(error="https://s3/b?X-Amz-Signature=hunter2"),
    "parser": ResponseParserError("https://s3/b?X-Amz-Signature=hunter2"),
}
"""What s3fs passes on as it is, and is no OSError."""


def failure(code: str) -> Exception:
    return CONNECTIONS.get(code) or Refusal(code)


class Members:
    """The parts of botocore's service model that are looked at."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.meta = self.service_model = self.input_shape = self
        self.members = dict.fromkeys(names)

    def operation_model(self, name: str) -> Members:
        assert name == "PutObject"
        return self


class Body:
    def __init__(self, data: bytes, error: Exception | None) -> None:
        self.data, self.error, self.closed = data, error, False

    async def read(self) -> bytes:
        if self.error is not None:
            raise self.error
        return self.data

    def close(self) -> None:
        self.closed = True


class FakeS3:
    """s3fs over a dictionary. `script` says what becomes of the next PUTs: a code to refuse with, or of CONNECTIONS;
    `lost:<code>` when it took effect all the same.
    """

    protocol = "s3"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.s3 = Members(("IfMatch", "IfNoneMatch"))
        self.objects: dict[str, tuple[bytes, dict[str, str]]] = {}
        self.script: list[str] = []
        self.puts = 0
        self.head_error: Exception | None = None
        self.body_error: Exception | None = None
        self.bodies: list[Body] = []
        self.returned_etag: Any = True

    def split_path(self, target: str) -> tuple[str, str, None]:
        bucket, _, key = target.partition("/")
        return bucket, key, None

    def pipe_file(
        self,
        target: str,
        data: bytes,
        chunksize: int = 50 << 20,
        *,
        Metadata: dict[str, str],
        mode: str = "",
        IfMatch: str | None = None,
    ) -> Any:
        self.puts += 1
        planned = self.script.pop(0) if self.script else ""
        if planned and not planned.startswith("lost:"):
            raise failure(planned)
        if len(data) >= 2 * chunksize:  # several parts, of which s3fs sends no If-Match and returns nothing
            self.objects[target] = (data, Metadata)
            return None
        there = self.objects.get(target)
        if (mode == "create" and there is not None) or (
            IfMatch is not None and (there is None or etag(there[0]) != IfMatch)
        ):
            raise Refusal("PreconditionFailed")
        self.objects[target] = (data, Metadata)
        if planned:
            raise failure(planned[5:])
        return {"ETag": etag(data)} if self.returned_etag else None

    def call_s3(self, verb: str, *, Bucket: str, Key: str) -> Any:
        assert verb == "head_object"
        if self.head_error is not None:
            raise self.head_error
        found = self.objects.get(f"{Bucket}/{Key}")
        if found is None:
            raise FileNotFoundError(Key)
        return {"ETag": etag(found[0]), "Metadata": found[1]}

    async def _call_s3(self, verb: str, *, Bucket: str, Key: str) -> Any:
        assert verb == "get_object"
        if f"{Bucket}/{Key}" not in self.objects:
            raise FileNotFoundError(Key)
        data = self.objects[f"{Bucket}/{Key}"][0]
        self.bodies.append(Body(data, self.body_error))
        return {"ETag": etag(data), "Body": self.bodies[-1]}


def etag(data: bytes) -> str:
    return f'"{data[:32].hex()}"'


@pytest.fixture
def fs(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeS3]:
    monkeypatch.setattr("hudi_core.storage.s3_conditional.time.sleep", lambda _: None)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield FakeS3(loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def put(fs: FakeS3) -> Callable[..., str]:
    storage = S3Storage(fs, "b/t", "s3://b/t")
    return lambda data, version=None: storage.write_if("x", data, version=version)


def test_each_condition_is_sent_and_its_failure_raised(fs: FakeS3, put: Callable[..., str]) -> None:
    first = put(b"one")
    with pytest.raises(StorageExistsError):
        put(b"two")
    second = put(b"two", first)
    for version in (first, '"else"'):
        with pytest.raises(StorageConflictError):
            put(b"three", version)
    assert S3Storage(fs, "b/t", "s3://b/t").read_versioned("x") == (b"two", second)
    assert fs.bodies[0].closed
    fs.objects.clear()
    with pytest.raises(StorageConflictError, match="gone"):
        put(b"three", second)


@pytest.mark.parametrize(
    "code", ["PreconditionFailed", "ConditionalRequestConflict", "InternalError", "SlowDown", *CONNECTIONS]
)
def test_a_lost_answer_is_our_own_whatever_the_server_says(fs: FakeS3, put: Callable[..., str], code: str) -> None:
    fs.script = [f"lost:{code}"]
    first = put(b"one")
    fs.script = [f"lost:{code}"]
    put(b"two", first)
    assert fs.objects["b/t/x"][0] == b"two"
    assert fs.puts == 2


def test_a_conflict_is_tried_again_until_it_is_an_error(fs: FakeS3, put: Callable[..., str]) -> None:
    fs.script = ["ConditionalRequestConflict"] * 4
    first = put(b"one")
    assert fs.puts == 5
    fs.script = ["ConditionalRequestConflict"] * 4
    put(b"two", first)
    for version in (None, etag(b"two")):
        if version is None:
            fs.objects.clear()
        else:
            fs.objects["b/t/x"] = (b"two", {})
        fs.script = ["ConditionalRequestConflict"] * 5
        with pytest.raises(StorageError, match="another conditional write is under way") as caught:
            put(b"three", version)
        assert not isinstance(caught.value, (StorageExistsError, StorageConflictError))


@pytest.mark.parametrize("version", [None, '"6f6e65"'])
def test_an_unknown_outcome_is_neither_yes_nor_no(fs: FakeS3, put: Callable[..., str], version: str | None) -> None:
    if version is not None:
        fs.objects["b/t/x"] = (b"one", {})
    scripts: list[tuple[str, Exception | None]] = [
        ("InternalError", None),
        ("PreconditionFailed", OSError("no answer")),
        *((code, None) for code in CONNECTIONS),
        *((code, error) for code, error in CONNECTIONS.items()),
    ]
    for script, head_error in scripts:
        fs.script, fs.head_error = [script], head_error
        with pytest.raises(StorageError) as caught:
            put(b"two", version)
        assert not isinstance(caught.value, (StorageExistsError, StorageConflictError, StorageNotFoundError))
        assert "hunter2" not in str(caught.value)


def test_a_large_object_is_put_whole(fs: FakeS3, put: Callable[..., str]) -> None:
    """In parts s3fs would drop the condition, and return no ETag of what it has written."""
    first = put(bytes(100 << 20))
    assert first == etag(bytes(32))
    with pytest.raises(StorageConflictError):
        put(b"x" * (100 << 20), "'another'")
    assert fs.objects["b/t/x"][0][:1] == b"\0"


def test_a_refused_create_exists_although_it_is_gone_again(fs: FakeS3, put: Callable[..., str]) -> None:
    fs.script = ["PreconditionFailed"]
    with pytest.raises(StorageExistsError):
        put(b"one")


def test_a_missing_bucket_is_no_absent_object(fs: FakeS3, put: Callable[..., str]) -> None:
    missing = FileNotFoundError("b")
    missing.__cause__ = Refusal("NoSuchBucket")
    fs.script, fs.head_error = ["NoSuchBucket"], missing
    with pytest.raises(StorageError, match="bucket") as caught:
        put(b"one")
    assert not isinstance(caught.value, (StorageExistsError, StorageConflictError, StorageNotFoundError))


def test_a_client_that_leaves_conditions_out_is_refused_before_it_overwrites(
    fs: FakeS3, put: Callable[..., str]
) -> None:
    fs.s3 = Members(("IfNoneMatch",))
    with pytest.raises(ConfigError, match="botocore"):
        put(b"one")
    assert fs.puts == 0


def test_a_client_that_returns_no_etag_is_refused(fs: FakeS3, put: Callable[..., str]) -> None:
    fs.returned_etag = None
    with pytest.raises(StorageError, match="ETag"):
        put(b"one")


@pytest.mark.parametrize(
    "error", [OSError("reset"), ValueError("Response payload is not completed"), *CONNECTIONS.values()]
)
def test_content_that_breaks_off_is_an_error(fs: FakeS3, put: Callable[..., str], error: Exception) -> None:
    put(b"one")
    fs.body_error = error
    with pytest.raises(StorageError):
        S3Storage(fs, "b/t", "s3://b/t").read_versioned("x")
    assert fs.bodies[-1].closed
    with pytest.raises(StorageNotFoundError):
        S3Storage(fs, "b/t", "s3://b/t").read_versioned("y")


class Pages:
    """A store that lists two objects a page."""

    protocol = "s3"

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def split_path(self, path: str) -> tuple[str, str, None]:
        bucket, _, key = path.partition("/")
        return bucket, key, None

    def call_s3(self, method: str, *, Bucket: str, Prefix: str, ContinuationToken: str = "", **_: Any) -> Any:
        assert (method, Bucket) == ("list_objects_v2", "bucket")
        rest = [name for name in self.names if name.startswith(Prefix) and name > ContinuationToken]
        page = {"Contents": [{"Key": name, "Size": len(name), "LastModified": 5.0} for name in rest[:2]]}
        return {**page, "IsTruncated": len(rest) > 2, "NextContinuationToken": rest[:2][-1] if rest else ""}


def test_all_pages_of_a_listing_are_read_and_only_what_is_in_the_folder() -> None:
    fs = Pages(["t/f/", "t/f/a", "t/f/b", "t/f/c", "t/f/d", "t/fg/e"])
    storage = S3Storage(fs, "bucket/t", "s3://bucket/t")
    assert [(info.path, info.size) for info in storage.list_files("f")] == [(f"f/{name}", 5) for name in "abcd"]
    assert storage.list_files("g") == []


class Removing(Pages):
    """A store that answers a removal of an absent object with an error, as some do that are not S3."""

    def __init__(self, missing: str) -> None:
        super().__init__([])
        self.missing = missing

    def rm_file(self, path: str) -> None:
        error = FileNotFoundError(path)
        error.__cause__ = Refusal(self.missing)
        raise error


def test_to_remove_an_absent_object_is_no_failure_and_a_missing_bucket_is_one() -> None:
    S3Storage(Removing("NoSuchKey"), "bucket/t", "s3://bucket/t").remove("f/a")
    with pytest.raises(StorageError, match="the bucket of s3://bucket/t does not exist"):
        S3Storage(Removing("NoSuchBucket"), "bucket/t", "s3://bucket/t").remove("f/a")
