from __future__ import annotations

import pytest

from hudi_core.expr.bound import All, Any, Known, Node, NullCheck, all_of, any_of
from hudi_core.expr.tree import Column

A, B = NullCheck(Column(("a",)), False), NullCheck(Column(("b",)), True)
TRUE, FALSE = Known(True), Known(False)


@pytest.mark.parametrize(
    ("nodes", "both", "one"),
    [
        ((), TRUE, FALSE),
        ((A,), A, A),
        ((A, B), All((A, B)), Any((A, B))),
        ((A, TRUE), A, TRUE),
        ((A, FALSE), FALSE, A),
        ((TRUE, FALSE), FALSE, TRUE),
        ((TRUE, TRUE), TRUE, TRUE),
    ],
)
def test_what_is_known_is_folded_away(nodes: tuple[Node, ...], both: Node, one: Node) -> None:
    assert all_of(nodes) == both
    assert any_of(nodes) == one
