"""One question of a command to a cluster: to the first address that answers, with sentences for errors."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from ...protocol.errors import CorruptData, ErrorCode, KafkaError, error_info
from ...protocol.messages import Request
from ..bootstrap import Bootstrap


def ask(bootstrap: Bootstrap, request: Request) -> Any:
    """The answer of a broker, whose error codes are the caller's business. Raises ClickException.

    What changes the cluster goes on from any broker to the active controller.
    """
    bootstrap.check_reachable()
    try:
        return asyncio.run(_ask(bootstrap, request))
    except KafkaError as error:
        raise refusal(error.code, error.message) from error
    except (CorruptData, OSError) as error:
        message = str(error)
        raise click.ClickException(f"{message[:1].upper()}{message[1:].rstrip('.')}.") from error


def check(error_code: int, message: str | None = None, *, about: str = "") -> None:
    """Raises ClickException, which begins with what it is about, unless the code is NONE."""
    code = ErrorCode(int(error_code))
    if code is not ErrorCode.NONE:
        raise refusal(code, message, about=about)


def refusal(code: ErrorCode, message: str | None, *, about: str = "") -> click.ClickException:
    sentence = (message or error_info(code).sentence).rstrip(".")
    return click.ClickException(f"{about}{': ' if about else ''}{sentence} ({code.name}).")


async def _ask(bootstrap: Bootstrap, request: Request) -> Any:
    failure: KafkaError | CorruptData | OSError | None = None
    for address in bootstrap.addresses:
        try:
            connection = await bootstrap.connect(address.host, address.port)
        except (KafkaError, CorruptData, OSError) as error:
            failure = error
            continue
        async with connection:
            return await connection.call(request)
    assert failure is not None, "there is an address"
    raise failure
