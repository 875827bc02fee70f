"""Aggregates as an operator writes them."""

from __future__ import annotations

import pytest

from penstock.pipeline.results.aggregates import Aggregate, AggregateError, parse_aggregates


def test_forms_of_an_aggregate() -> None:
    assert parse_aggregates(("count", " mean_delay = avg( dep_delay )", "max(a.b)", "count(x)"), ()) == (
        Aggregate(name="count", function="count", field=""),
        Aggregate(name="mean_delay", function="avg", field="dep_delay"),
        Aggregate(name="max_a_b", function="max", field="a.b"),
        Aggregate(name="count_x", function="count", field="x"),
    )


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ((), "at least one aggregate"),
        (("median(x)",), "'median\\(x\\)' is no aggregate"),
        (("sum",), "'sum' needs a field"),
        (("count()",), "is no aggregate"),
        (("avg(x);drop",), "is no aggregate"),
        (("count", "count=sum(x)"), "two columns of the result are called count"),
        (("origin=max(x)",), "two columns of the result are called origin"),
    ],
)
def test_other_texts_are_refused(texts: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(AggregateError, match=sentence):
        parse_aggregates(texts, ("origin",))
