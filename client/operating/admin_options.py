"""The options of commands that ask over HTTP, and sentences for what goes wrong on the way."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, Protocol, TypeVar

import click

from ...protocol.no_quorum import find_no_quorum
from ..bootstrap import Bootstrap, bootstrap_options
from .admin_address import find_admin

if TYPE_CHECKING:
    from ..admin import Admin

    class Opener(Protocol):
        """Opens the client for the addresses of the command line, or for others."""

        def __call__(self, others: str | None = None, /) -> AbstractContextManager[Admin]: ...


ENVIRONMENT_VARIABLE: Final = "PENSTOCK_ADMIN"
FROM_ELSEWHERE: Final = (
    "admin.listeners is an address of the node's own machine unless it is set: run the command there, or set "
    "admin.listeners=http://HOST:PORT and name it with --admin."
)

_P = ParamSpec("_P")
_R = TypeVar("_R")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _urls(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    from ..admin.admin_address import parse_addresses

    if text is None:
        return None
    try:
        parse_addresses(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error
    return text


admin_option = click.option(
    "--admin",
    "urls",
    metavar="URL,…",
    envvar=ENVIRONMENT_VARIABLE,
    show_envvar=True,
    callback=_urls,
    help="The HTTP administration of any node. Without it the brokers are asked for it.",
)
"""Without the bootstrap address: for commands that take both apart, see `admin_of`."""


def moving_max_option(what: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """How many moves run at once: as many partitions as `what` says."""
    return click.option(
        "--moving-max",
        type=click.IntRange(1, 1000),
        default=50,
        show_default=True,
        metavar="COUNT",
        help=f"How many partitions {what} at once.",
    )


def admin_options(command: Callable[Concatenate[Admin, _P], _R]) -> Callable[_P, _R]:
    """Gives a command `--admin` beside the options of `Bootstrap`, and the client as first argument."""

    @opener_options
    @functools.wraps(command)
    def with_admin(opened: Opener, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with opened() as admin:
            return command(admin, *args, **kwargs)

    return with_admin


def opener_options(command: Callable[Concatenate[Opener, _P], _R]) -> Callable[_P, _R]:
    """As `admin_options` for a command that does not always ask: it gets what opens the client."""

    @admin_option
    @bootstrap_options
    @functools.wraps(command)
    def with_opener(bootstrap: Bootstrap, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        urls = kwargs.pop("urls")
        assert urls is None or isinstance(urls, str)

        def opened(others: str | None = None, /) -> AbstractContextManager[Admin]:
            return admin_of(bootstrap, others or urls)

        return command(opened, *args, **kwargs)

    return with_opener


@contextmanager
def admin_of(bootstrap: Bootstrap, urls: str | None = None) -> Iterator[Admin]:
    """The client for these addresses, or for those that the brokers say; its errors are sentences."""
    from ..admin import Admin

    with (
        sentences(),
        Admin(
            urls or find_admin(bootstrap), timeout_s=bootstrap.timeout_s, credentials=bootstrap.admin_credentials()
        ) as admin,
    ):
        yield admin


def check_quorum(admin: Admin) -> None:
    """For commands that change metadata. Raises ClickException, within 2 s, where the quorum has no majority.

    The change itself would be waited for until the time of the command is over.
    """
    reason = admin.get_quorum().reason or ""
    if no_quorum := find_no_quorum(reason.encode()):
        raise click.ClickException(f"{no_quorum}.")


@contextmanager
def sentences() -> Iterator[None]:
    """What the client of the administration raises becomes one sentence with exit status 1."""
    from ..admin import AdminProblem, AdminUnreachable

    try:
        yield
    except AdminProblem as error:
        name = "" if error.error is None else f" ({error.error.name})"
        if no_quorum := find_no_quorum(error.problem.detail.encode()):
            raise click.ClickException(f"{no_quorum}.") from error
        raise click.ClickException(f"{error.problem.detail.rstrip('.')}{name}.") from error
    except AdminUnreachable as error:
        hint = f" {FROM_ELSEWHERE}" if str(error).startswith("No node can be reached") else ""
        raise click.ClickException(f"{str(error).rstrip('.')}.{hint}") from error
