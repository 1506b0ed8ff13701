"""Creates a table, for tasks that write to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from airflow_hudi.arguments import as_texts, is_literal, own_fields, verb_values
from airflow_hudi.operators.base import DRY_RUN, BaseHudiOperator
from hudi_core.config.new_table import MERGE_MODES, TYPES
from hudi_core.verbs.create import CreateRequest


class HudiCreateTableOperator(BaseHudiOperator):
    """Creates an empty table, which Hudi of its version and HudiWriteOperator write to. A table that is there already
    is left alone, and the task succeeds; another one than this fails it without retries. What the arguments leave out,
    `options` may say by the names of writers' options.

    XCom: `{"table", "created", "name", "type", "version", "columns", "properties", "reason"}`; `reason` is set when the
    table was there.

    :param schema: an Avro schema of a record, as JSON, or the path or URI of a file with it, which the job can read
        (templated)
    :param like: a Parquet file, or a folder of them, with the table's columns, instead of `schema` (templated)
    :param table_name: the table's name (templated)
    :param table_type: `cow` or `mor`; empty is cow (templated)
    :param table_version: 6, 8 or 9: the version that readers and writers of the table handle (templated)
    :param record_key: the columns of the record key, as a list or separated by commas (templated)
    :param partition_by: the columns of partitions, as a list or separated by commas; for the key generator CUSTOM with
        types, as in `day:TIMESTAMP` (templated)
    :param ordering: the columns that order the rows of a key, as a list or separated by commas (templated)
    :param merge_mode: `EVENT_TIME_ORDERING` or `COMMIT_TIME_ORDERING`; empty is Hudi's choice (templated)
    :param hive_style: whether partition paths name their columns (templated)
    :param key_generator: `SIMPLE`, `COMPLEX`, `NON_PARTITION`, `TIMESTAMP` or `CUSTOM`; empty is Hudi's choice
        (templated)
    :param dry_run: whether the table is only shown, with its schema; may be rendered (templated)
    """

    request = CreateRequest
    nothing_to_do: str = "succeed"
    schema: str = ""
    like: str = ""
    record_key: Sequence[str] | str = ()
    partition_by: Sequence[str] | str = ()
    ordering: Sequence[str] | str = ()
    dry_run: bool | str = False  # type: ignore[assignment]  # Airflow's method of this name logs, and is not called
    template_fields = (
        *("schema", "like", "table_name", "table_type", "table_version", "record_key", "partition_by", "ordering"),
        *("merge_mode", "hive_style", "key_generator", DRY_RUN),
        *BaseHudiOperator.template_fields,
    )
    _argument_choices: ClassVar = {"table_type": (*TYPES, *TYPES.values()), "merge_mode": MERGE_MODES}

    def check_arguments(self) -> None:
        super().check_arguments()
        values = verb_values(CreateRequest, self, literals_only=True)
        is_whole = len(values) == len(own_fields(CreateRequest)) and is_literal(self.options)
        if is_whole and (self.schema or self.like):
            CreateRequest("/", options=as_texts(self.options, where="options"), **values)

    def report(self, request: CreateRequest) -> dict[str, Any]:  # type: ignore[override]
        """Returns the document without the schema, which may be larger than an XCom."""
        document = super().report(request)
        return document if request.dry_run else {name: document[name] for name in document if name != "schema"}
