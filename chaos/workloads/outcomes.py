"""What an operation can come to when it does not succeed: it certainly did nothing, or what it did is unknown.

Which error is which, by the sources of librdkafka and aiokafka:

- What a client refuses before it takes a record (a full queue, a record too large, a producer that is broken) is
  certain. An error in a delivery report is not, whatever its code: each client asks again by itself, and an attempt
  before the last may have been carried out. librdkafka knows more (`rd_kafka_message_status`), but does not tell it in
  Python.
- A transaction that was never asked to be committed is certain to have no effect, even where its abort came to no
  answer: it is aborted by its successor or its timeout. Once its commit was asked for, an error is certain of nothing.
- A read that fails has changed nothing.
- The Admin APIs answer with a code that is certain, but for REQUEST_TIMED_OUT, the codes that say that a node is not
  the controller or has no answer yet, and what clients say of themselves, `_TIMED_OUT` or `_TRANSPORT`.
"""

from __future__ import annotations

from typing import Any


class NotDoneError(Exception):
    """The operation certainly had no effect. `is_broken`: the session is of no more use."""

    def __init__(self, sentence: str, *, is_broken: bool = False) -> None:
        super().__init__(sentence)
        self.is_broken = is_broken


class UnknownOutcomeError(Exception):
    """The operation may have taken place, or may take place yet. `value` is what is known of it, None without any."""

    def __init__(self, sentence: str, value: Any = None) -> None:
        super().__init__(sentence)
        self.value = value
