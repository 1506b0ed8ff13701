"""Says which option names and addresses hold secrets, and reads the file on the driver that may hold them.

The driver takes secrets from its environment, its role or that file, and hands them to executors with the units of
work. Secrets are never in arguments, requests, logs or error texts: verbs/request.py checks every new request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from hudi_core.errors import ConfigError, masked, without_user_info
from hudi_core.request.texts import check_texts, parse_object

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORD = re.compile(
    r"secrets?|tokens?|passwords?|passwd|passphrase|pwd|pass|credentials?|sas|bearer|pkey|signature|sig|cookies?"
    r"|authorization|jaas"
    # Several words written together.
    r"|.*((access|secret|account|api|private|storage|shared|session|encryption|master)key|connectionstring).*"
    r"|.*(client|app)secret|.*(access|auth|bearer|id|oauth|refresh|session|sas)tokens?|.*password.*"
)
_SECRET_AT_END = frozenset({"auth", "header", "headers"})
_HARMLESS_BEFORE_KEY = re.compile("lock|partition|record|sort|row|map|primary|foreign|group|order|hash|range")
"""Words for keys of rows and of locks, as in `hoodie.write.lock.zookeeper.lock_key`."""
_HARMLESS_AFTER_KEY = re.compile("store|tab|length|size|generator|gen|gens|fields?|columns?|prefix")
_HARMLESS_END = re.compile(
    "providers?|type|class|files?|paths?|dir|enabled?|names?|duration|expiration|expiry|location|timeout|mode|algorithm"
    "|interval|seconds|ms|version|length|regex|endpoint|ip"
)
"""Last words of names that say where a secret is, or how it is made. Such options hold no secret."""
_REMEDY = "give secrets by the environment (AWS_ACCESS_KEY_ID, …), an instance role or a storage options file"
_REFERENCE = re.compile(
    r"spark\.kubernetes\.(driver|executor)\.(secrets|secretKeyRef|(service\.)?(annotation|label))\."
    r"|spark\.kubernetes\.container\.image\.pullSecrets$|spark\.kerberos\.renewal\.credentials$"
    r"|spark\.hadoop\.hive\.metastore\.token\.signature$",
    re.IGNORECASE,
)
"""Options that hold no secret: names of Kubernetes secrets and where they are mounted; what is written on Kubernetes
objects; whether a keytab or a ticket is used; the name of a delegation token.
"""


def is_secret_key(name: str) -> bool:
    """Whether an option's name looks like a secret, in any case and with any separators (`sasToken`, …)."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or _HARMLESS_END.fullmatch(words[-1]) or _REFERENCE.match(name):
        return False
    return (
        words[-1] in _SECRET_AT_END
        or any(_SECRET_WORD.fullmatch(word) for word in words)
        or ("connection", "string") in pairwise(words)
        or any(
            word == "key" and not _HARMLESS_BEFORE_KEY.fullmatch(before) and not _HARMLESS_AFTER_KEY.fullmatch(after)
            for before, word, after in zip(["", *words[:-1]], words, [*words[1:], ""], strict=True)
        )
    )


def refuse_secret_address(address: str, *, what: str) -> None:
    """Raises ConfigError, without showing the secret, for an address with a password or a signed query."""
    if "://" not in address:
        return
    try:
        names = [name for name, _ in parse_qsl(urlsplit(address).query, keep_blank_values=True)]
    except ValueError:
        names = []  # no storage opens such an address, and its error says so
    if without_user_info(address) != address or any(is_secret_key(name) for name in names):
        raise ConfigError(
            f"{what} must not hold secrets: {masked(address)} names a password or a signature", remedy=_REMEDY
        )


def refuse_secrets(options: Mapping[str, str], *, where: str, remedy: str | None = None) -> None:
    """Raises ConfigError when an option looks like a secret, by its name or by an address in it, or is no text. Does
    not show its value. `where` names the place of the options; `remedy` is by default that of requests.
    """
    check_texts(options, where=where)
    found = sorted(
        name for name, value in options.items() if is_secret_key(name) and not _is_address_of_key(name, value)
    )
    if found:
        raise ConfigError(
            f"{where} must not hold secrets, found {', '.join(found)}",
            remedy=remedy or _REMEDY,
        )
    for name, value in options.items():
        refuse_secret_address(value, what=f"{where}, {name},")


def _is_address_of_key(name: str, value: str) -> bool:
    """Whether the value is the address of a key in AWS KMS. A key itself is in Base64, which has no colon."""
    return name.endswith("encryption.key") and value.startswith("arn:")


def merge_storage_options(options: Mapping[str, str], file: str | None) -> dict[str, str]:
    """Returns the options of `file` (a JSON object of texts), overruled by `options`. Raises ConfigError when `options`
    hold a secret, or the file cannot be read. Never shows the file's content.
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
