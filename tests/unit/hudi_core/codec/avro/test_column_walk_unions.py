"""Branches of a union that share a path must not take each other's place."""

from __future__ import annotations

from hudi_core.codec.avro.column_walk import ColumnWalk, Encoded


def test_two_branches_of_one_path_are_not_read() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "int", "long"]}]}
    walk = ColumnWalk(schema, {("n",)})
    # Branch 1 with 5, branch 2 with 6, null.
    assert walk.read(Encoded.of([b"\x02\x0a", b"\x04\x0c", b"\x00"])) is None
    found = walk.read(Encoded.of([b"\x02\x0a", b"\x02\x0c", b"\x00"]))
    assert found is not None
    assert (found["n",].rows.tolist(), found["n",].values.tolist()) == ([0, 1], [5, 6])
