from __future__ import annotations

import logging
import pickle
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_core import errors
from hudi_core.errors import LONGEST, HudiError, LogFormatter, Reminder, masked, shortened, truncated

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, HudiError)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_crosses_a_process_whole(kind: type[HudiError]) -> None:
    error = kind("it is cut", path="a/b.parquet", remedy="restore it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.message, copy.path, copy.remedy) == ("it is cut", "a/b.parquet", "restore it")
    assert str(copy) == "a/b.parquet: it is cut (restore it)"


def test_the_path_is_said_once() -> None:
    assert str(HudiError("a/b.parquet is cut", path="a/b.parquet")) == "a/b.parquet is cut"


def test_what_is_damaged_gone_or_refused_has_a_remedy_that_its_raiser_may_better() -> None:
    for kind in KINDS:
        if issubclass(kind, errors.FormatError | errors.StorageNotFoundError):
            assert kind("it is so", path="a").remedy
            assert pickle.loads(pickle.dumps(kind("it is so", remedy="mend it"))).remedy == "mend it"


def test_an_error_has_no_remedy_that_fits_all_messages() -> None:
    assert str(errors.ConfigError("the lock has no key")) == "the lock has no key"


def test_exit_codes() -> None:
    bad = {
        "ConfigError",
        "StorageNotFoundError",
        "CredentialsMissingError",
        "FormatError",
        "CorruptFileError",
        "SizeLimitError",
        "UnsupportedError",
        "UnsupportedVersionError",
        "ZoneUnknownError",
        "MetadataUnavailableError",
    }
    assert {kind.__name__ for kind in KINDS if kind.exit_code == errors.EXIT_BAD_INPUT} == bad
    assert {kind.__name__ for kind in KINDS if kind.exit_code == errors.EXIT_RETRY} == {
        "ConflictError",
        "LockError",
        "BuildRolledBackError",
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot reach https://me:pa/ss@host:9000/x", "cannot reach https://***@host:9000/x"),
        ("GET 'https://h/t?sv=1&sig=abc&x=2' failed", "GET 'https://h/t?sv=1&sig=***&x=2' failed"),
        ("s3://b/t?X-Amz-Signature=abc", "s3://b/t?X-Amz-Signature=***"),
        ("no sc://h:443/;use_ssl=true;token=ab/c== now", "no sc://h:443/;use_ssl=true;token=*** now"),
        (
            "hdfs://nn:8020/a@b and abfss://c@account/t?version=3",
            "hdfs://nn:8020/a@b and abfss://c@account/t?version=3",
        ),
        ("/a?sig=b", "/a?sig=b"),
    ],
)
def test_secrets_of_addresses_are_masked(text: str, shown: str) -> None:
    error = HudiError(text, path=text)
    assert (error.message, error.path, error.args) == (shown, shown, (shown,))


@pytest.mark.parametrize(
    ("unit", "secret", "shown"),
    [
        ("://a:", "", ""),
        ("://a:b ", "s3://me:pass@b", "s3://***@b"),
        ("://a:1/", "", ""),
        ("://", "?" + "sig" * 20_000 + " s3://me:pass@b", "?" + "sig" * 20_000 + " s3://***@b"),
        ("://?", "key=" + "key" * 20_000 + " x", "key=*** x"),
    ],
)
def test_a_text_of_many_addresses_is_masked_in_the_time_of_its_length(unit: str, secret: str, shown: str) -> None:
    """Texts of a table's files: to look for the end of each address anew took half a minute for 200 KiB of them."""
    text = unit * 60_000
    start = time.monotonic()
    assert masked(text + secret) == text + shown
    assert LogFormatter("%(message)s").format(
        logging.LogRecord("n", logging.ERROR, "f", 1, "%s", (text + secret,), None)
    ) == (text + shown)
    assert len(HudiError(text + secret).message) <= LONGEST
    assert time.monotonic() - start < 10


@given(st.text("?&;=:/@ 1asigKEY-'[", max_size=60))
def test_masking_is_what_the_plain_patterns_say(text: str) -> None:
    """Those that the patterns of errors.py replace: clear, and slow."""
    users = re.sub(r"://[^/@\s:\[]*:(?!\d{1,5}(?:/|$))[^@\s]*@", "://***@", "s3://" + text)
    assert masked("s3://" + text) == re.sub(r"(?i)([?&;][\w.%-]*(?:sig|key)[\w.%-]*=)[^&#\s'\"<>)]+", r"\1***", users)


def test_log_lines_cannot_be_forged() -> None:
    record = logging.LogRecord(
        "n", logging.ERROR, "f", 1, "%s", ("dt=\nHUDI_RESULT {}\x1b[1m s3://me:hunter2@b/t",), None
    )
    text = LogFormatter("%(levelname)s %(message)s").format(record)
    assert text == "ERROR dt=\n  HUDI_RESULT {}\\x1b[1m s3://***@b/t"


def test_a_path_is_one_line() -> None:
    """A partition value may have a tab or a line feed."""
    error = HudiError("gone", path="a\tb/c\nerror: forged\x1b")
    assert (error.path, str(error)) == ("a\\tb/c\\nerror: forged\\x1b", "a\\tb/c\\nerror: forged\\x1b: gone")
    assert HudiError("again", path=error.path).path == error.path


@pytest.mark.parametrize(
    ("quiet_for", "moments"),
    [(0.0, [100, 130, 160, 190]), (2.0, [102, 132, 162, 192]), (29.0, [129, 159, 189]), (500.0, [])],
)
def test_a_wait_is_logged_after_its_quiet_start_and_each_half_minute(quiet_for: float, moments: list[int]) -> None:
    now = [100.0]
    reminder = Reminder(lambda: now[0], quiet_for=quiet_for)
    due = []
    for moment in range(100, 200):
        now[0] = float(moment)
        if reminder.is_due():
            due.append(moment)
    assert due == moments


def test_a_late_look_at_a_reminder_does_not_add_up() -> None:
    """The wait between two messages starts at the first of them, not at the time that it was due."""
    now = [0.0]
    reminder = Reminder(lambda: now[0], every=10.0)
    found = []
    for moment in (0.0, 25.0, 30.0, 34.9, 35.0):
        now[0] = moment
        found.append(reminder.is_due())
    assert found == [True, True, False, False, True]


def test_a_name_of_megabytes_is_shortened_in_a_message() -> None:
    error = HudiError("not a marker: " + "x" * 2_000_000 + "END", path="y" * 1_000_000, remedy="remove it")
    assert error.path is not None
    assert len(error.message) <= LONGEST
    assert len(error.path) <= LONGEST
    assert error.message.startswith("not a marker: xxx")
    assert error.message.endswith("xEND")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert shortened("x" * LONGEST) == "x" * LONGEST


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abc", "abc"), ("abcd", "abc…")])
def test_a_truncated_text_says_that_it_is(text: str, shown: str) -> None:
    assert truncated(text, 3) == shown
