"""Topics by regular expression: RE2's syntax, of which every expression is matched in time linear in the topic's name.

An expression matches a topic when it matches all of its name, internal topics too, as in Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import re2

from ....protocol.errors import ErrorCode, KafkaError

MEMORY_BYTES_MAX: Final = 1024 * 1024
"""Of one expression: compiling takes some milliseconds at most, and matching a name not much longer."""
LENGTH_MAX: Final = 32_767
"""In bytes: what the key of a record can hold."""


def _options() -> Any:
    options = re2.Options()
    # A hostile client is told; the log is not its to fill.
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY_BYTES_MAX
    return options


_OPTIONS: Final = _options()


def check_expression(expression: str) -> None:
    """Raises KafkaError(INVALID_REGULAR_EXPRESSION)."""
    reason = "it is too long" if len(expression.encode()) > LENGTH_MAX else None
    if reason is None:
        try:
            re2.compile(expression, _OPTIONS)
        except re2.error as error:
            reason = _sentence(error)
    if reason is not None:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {reason}.",
        )


def compile_expression(expression: str) -> Any:
    """An expression of RE2 with `fullmatch`. Raises ValueError with the reason why it is invalid."""
    try:
        return re2.compile(expression, _OPTIONS)
    except re2.error as error:
        raise ValueError(_sentence(error)) from None


def topics_matching(
    expressions: Iterable[str], topics: Iterable[str], is_wanted: Callable[[], bool] = lambda: True
) -> dict[str, tuple[str, ...]]:
    """By expression, sorted; one that cannot be read matches nothing. What is not wanted any more ends early.

    In a thread: RE2 lets others run while it matches, and an expression can be such that it takes long over thousands
    of topics.
    """
    names = sorted(topics)
    matching: dict[str, tuple[str, ...]] = {}
    for expression in expressions:
        try:
            compiled = re2.compile(expression, _OPTIONS)
        except re2.error:
            matching[expression] = ()
        else:
            matching[expression] = tuple(name for name in names if is_wanted() and compiled.fullmatch(name) is not None)
    return matching


def _sentence(error: Exception) -> str:
    (reason,) = error.args or ("unknown",)
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
