"""Aggregates as an operator writes them: `count`, `avg(dep_delay)`, `mean_delay=avg(dep_delay)`. Pure."""

import re
from dataclasses import dataclass
from typing import Final

from ..job import JobError

FUNCTIONS: Final = ("count", "sum", "avg", "min", "max")

_FORM: Final = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)\s*=)?\s*(?P<function>[a-z]+)\s*(?:\(\s*(?P<field>[\w.]+)\s*\))?\s*", re.ASCII
)


class AggregateError(JobError):
    """A text is no aggregate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """`field` is a path in the value; empty for the count of records, while `count(field)` leaves out nulls."""

    name: str
    function: str
    field: str


def parse_aggregates(texts: tuple[str, ...], taken: tuple[str, ...]) -> tuple[Aggregate, ...]:
    """`taken` are names of columns that the result has anyway. Raises AggregateError."""
    if not texts:
        raise AggregateError("a window needs at least one aggregate, such as count")
    found = tuple(_parse(text) for text in texts)
    names = set(taken)
    for one in found:
        if one.name in names:
            raise AggregateError(f"two columns of the result are called {one.name}: name one, as in other={one.name}")
        names.add(one.name)
    return found


def _parse(text: str) -> Aggregate:
    match = _FORM.fullmatch(text)
    if match is None or match["function"] not in FUNCTIONS:
        raise AggregateError(
            f"{text!r} is no aggregate: expected count, or {', '.join(FUNCTIONS)} of a field as avg(delay)"
        )
    function, field = match["function"], match["field"] or ""
    if not field and function != "count":
        raise AggregateError(f"{text!r} needs a field, as in {function}(delay)")
    default = f"{function}_{field.replace('.', '_')}" if field else function
    return Aggregate(name=match["name"] or default, function=function, field=field)
