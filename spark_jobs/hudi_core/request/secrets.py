"""Which option names hold secrets. Secrets never travel in arguments, requests, logs or error texts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hudi_core.errors import ConfigError

_SECRET = re.compile(
    r"(^|[._-])(key|secret|secrets|token|password|passwd|passphrase|credential|credentials|sas)($|[._-])"
    r"|access_?key|secret_?key|account_?key|api_?key|private_?key|session_?token|connection_?string",
    re.IGNORECASE,
)
_NOT_SECRET = re.compile(r"(lock|partition|record|sort|row|map|primary)[._-]?key($|[._-])", re.IGNORECASE)
"""Keys of rows and of locks, as in `hoodie.write.lock.zookeeper.lock_key`."""
MASK = "***"


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


def mask(options: Mapping[str, str]) -> dict[str, str]:
    """The options with secret values replaced, for logs and messages."""
    return {name: MASK if is_secret_key(name) else value for name, value in options.items()}
