"""What the lines of the log look like: one event, one line, whatever clients put into its fields."""

from __future__ import annotations

import logging
import sys

LINE_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)s %(message)s (%(name)s)"
"""As Apache Kafka's own ends with the logger: its name is what an administrator gives another level."""
MESSAGE_CHARACTERS_MAX = 2000
"""A client id alone may have 32,767."""


class LineFormatter(logging.Formatter):
    """Escapes what would end a line or move a terminal's cursor; cuts what is too long. Tracebacks stay as they are."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as logging calls it
        record.message = one_line(record.message)
        return super().formatMessage(record)


def one_line(message: str) -> str:
    if len(message) > MESSAGE_CHARACTERS_MAX:
        message = f"{message[:MESSAGE_CHARACTERS_MAX]}… ({len(message)} characters)"
    if message.isprintable():
        return message
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in message
    )


def log_to_standard_error(level: int) -> None:
    """All of the process, from `level` on; of libraries not what is below information level."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(LINE_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S"))
    logging.basicConfig(level=max(level, logging.INFO), handlers=[handler])
    logging.getLogger(__package__.partition(".")[0]).setLevel(level)
