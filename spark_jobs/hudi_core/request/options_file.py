"""Storage options from two places: the request, which holds no secrets, and a file on the driver, which may."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hudi_core.errors import ConfigError
from hudi_core.request.json_fields import parse_object
from hudi_core.request.secrets import refuse_secrets


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
