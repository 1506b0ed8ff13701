"""Looks after a table's metadata table: creates, updates, drops and validates it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from airflow_hudi.arguments import is_literal, names_in
from airflow_hudi.operators.base import MOST_LISTED, BaseHudiOperator, listed
from hudi_core.request.texts import check_choice
from hudi_core.verbs.request import Request, check_names, verb_class

VERBS = ("create", "update", "drop", "validate")


class HudiMetadataOperator(BaseHudiOperator):
    """Creates, updates, drops or validates the metadata table or its indexes. `create` initializes indexes. `update`
    applies missing instants and runs the metadata table's own services. `drop` removes indexes. `validate` compares the
    metadata table with the table. A retry does not repeat work that is done.

    XCom: `table`, and the document of `hudictl metadata <verb>`. The document of `validate` has the first 200
    differences, also when the task fails because of them.

    :param verb: `create`, `update`, `drop` or `validate` (templated)
    :param partitions: partitions of the metadata table to create or drop, as a list or separated by commas; with
        `update` those that must exist. Without any, `create` initializes `files`, and `drop` drops the whole metadata
        table (templated)
    :param columns: columns of `column_stats`, as a list or separated by commas, nested ones with dots: `create` adds
        them and `drop` removes them, without a rebuild of the index; the writers' option
        `hoodie.metadata.index.column.stats.column.list` has to agree (templated)
    :param fail_on_differences: whether `validate` fails the task, without retries, when anything differs
    """

    verb: str = "update"
    partitions: Sequence[str] | str = ()
    columns: Sequence[str] | str = ()
    fail_on_differences: bool = True
    template_fields = ("verb", "partitions", "columns", *BaseHudiOperator.template_fields)
    _argument_choices: ClassVar = {"verb": VERBS}

    def serve(self) -> dict[str, Any]:
        document = {"table": self.reader.storage.uri, **self.report(self._request(self.request_fields()))}
        if self.verb == "validate":
            self._judge(document)
        else:
            self.log.info("Metadata table: %s", document)
        return document

    def check_arguments(self) -> None:
        super().check_arguments()
        if self.verb and is_literal(self.verb, self.partitions, self.columns):
            self._request({"table": "/"})

    def _request(self, fields: dict[str, Any]) -> Request:
        check_choice("verb", self.verb, VERBS)
        request_type = verb_class(f"metadata_{self.verb}")
        named = {"partitions": names_in(self.partitions), "columns": names_in(self.columns)}
        requested: dict[str, Any] = {name: names for name, names in named.items() if names}
        check_names(request_type, {*requested})
        return request_type(**fields, **requested)

    def _judge(self, document: dict[str, Any]) -> None:
        for kind in document["not_checked"]:
            self.log.warning("Not checked: %s: %s", kind["kind"], kind["why"])
        count = sum(document["counts"].values())
        lines = [_recorded(difference) for difference in document["differences"]]
        for line in lines[:MOST_LISTED]:
            self.log.warning("%s", line)
        self.log.info("%s: %d differences in %s", document["table"], count, ", ".join(document["kinds"]))
        if count and self.fail_on_differences:
            self.fail(document, listed(f"{document['table']}: differences: {count}", lines, count))


def _recorded(difference: dict[str, Any]) -> str:
    place = "/".join(part for part in (difference["partition"], difference["file"]) if part)
    return f"{difference['kind']} {place}: {difference['what']}"
