"""The verb create, which makes a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

from hudi_core.config.new_table import NewTable
from hudi_core.errors import ConfigError
from hudi_core.frozen import dataclass
from hudi_core.request.results import Result
from hudi_core.request.secrets import refuse_secret_address
from hudi_core.verbs.request import WHAT, Request, Work

if TYPE_CHECKING:
    from hudi_core.services.create.verb import Creation
    from hudi_core.storage.base import Storage


@dataclass(frozen=True, slots=True)
class CreateRequest(Request):
    """Makes an empty table, which Hudi and this engine write to.

    Its columns are those of `schema`, an Avro schema as JSON or the address of such a file, or are like those of the
    Parquet file `like`. `table_type` is cow or mor, `table_version` 6, 8 or 9. Without a merge mode or a key generator
    the table has those that Hudi takes. What the fields leave out, `options` may say by the names of writers' options.
    A table that is there already is left alone; another one than this is an error. A `dry_run` writes nothing.
    """

    verb = "create"
    needs_table = False
    schema: str = ""
    like: str = ""
    table_name: str = ""
    table_type: str = ""
    table_version: int = 0
    record_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    ordering: tuple[str, ...] = ()
    merge_mode: str = ""
    hive_style: bool = False
    key_generator: str = ""
    dry_run: bool = False

    def check_fields(self) -> None:
        given = [name for name in ("schema", "like") if getattr(self, name).strip()]
        if len(given) != 1:
            raise ConfigError(
                f"{WHAT}: {self.verb} needs {'either ' if given else ''}a schema or a file like its rows",
                remedy="give one of `schema` and `like`",
            )
        for name in given:
            if not getattr(self, name).lstrip().startswith("{"):
                refuse_secret_address(getattr(self, name), what=f"the address of `{name}`")
        self._table()

    def nothing_on_storage(self, storage: Storage, storage_options: Mapping[str, str] | None = None) -> Result | None:
        """Returns the table that is there, and what a dry run shows: it writes nothing, wherever it is done."""
        creation = self._creation(storage, storage_options)
        found = creation.run(dry_run=True) if self.dry_run else creation.find()
        return None if found is None else Result(document=found.to_dict())

    def run(self, work: Work) -> Result:
        return self.run_on_storage(work.context.storage, work.context.storage_options)

    def run_on_storage(self, storage: Storage, storage_options: Mapping[str, str] | None = None) -> Result:
        return Result(document=self._creation(storage, storage_options).run(dry_run=self.dry_run).to_dict())

    def _creation(self, storage: Storage, storage_options: Mapping[str, str] | None) -> Creation:
        from hudi_core.services.create.verb import Creation

        return Creation(storage, self._table(), self.options, storage_options or {}, self.schema, self.like)

    def _table(self) -> NewTable:
        return NewTable.of({item.name: getattr(self, item.name) for item in fields(self)}, self.options)
