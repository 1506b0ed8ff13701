"""Which option names hold secrets, and the file on the driver that may hold them.

The driver takes secrets from its environment, its role or that file, and hands them to executors with the units of
work. They never are in arguments, requests, logs or error texts: requests.py checks every request when it is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from hudi_core.errors import ConfigError
from hudi_core.request.json_fields import parse_object

_SECRET = re.compile(
    r"(^|[._-])(key|secret|secrets|token|password|passwd|passphrase|credential|credentials|sas)($|[._-])"
    r"|access_?key|secret_?key|account_?key|api_?key|private_?key|session_?token|connection_?string",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(r"(lock|partition|record|sort|row|map|primary)[._-]?key($|[._-])", re.IGNORECASE)
"""Keys of rows and of locks, as in `hoodie.write.lock.zookeeper.lock_key`."""


def is_secret_key(name: str) -> bool:
    """Whether an option of this name looks like a secret (`key`, `secret`, `fs.s3a.secret.key`, `account_key`, …)."""
    return _SECRET.search(_NOT_SECRET.sub(".", name)) is not None


def refuse_secrets(options: Mapping[str, str], *, where: str) -> None:
    """Raises ConfigError when an option looks like a secret, without showing its value.

    `where` names the place of the options, for the message.
    """
    found = sorted(name for name in options if is_secret_key(name))
    if found:
        raise ConfigError(
            f"{where} must not hold secrets, found {', '.join(found)}",
            remedy="give secrets by the environment (AWS_ACCESS_KEY_ID, …), an instance role or a storage options file",
        )


def merge_storage_options(options: Mapping[str, str], file: str | None) -> dict[str, str]:
    """The options of `file` (a JSON object of texts), overruled by `options`.

    Raises ConfigError when `options` hold a secret, or when the file cannot be read; its content is never shown.
    """
    refuse_secrets(options, where="storage options in arguments")
    return {**(_read(Path(file)) if file is not None else {}), **options}


def _read(file: Path) -> dict[str, str]:
    remedy = "the file holds one JSON object of texts and is readable where the driver runs"
    try:
        value = parse_object(file.read_bytes(), what="the storage options file")
    except OSError as error:
        raise ConfigError(
            f"the storage options file cannot be read: {error.strerror}", path=str(file), remedy=remedy
        ) from error
    except ConfigError as error:
        raise ConfigError(error.message, path=str(file), remedy=remedy) from error
    if not all(isinstance(item, str) for item in value.values()):
        raise ConfigError("the storage options file holds a value that is no text", path=str(file), remedy=remedy)
    return value
