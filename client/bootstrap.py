"""How commands reach a cluster: the options they share, and sentences for what goes wrong on the way."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import click
from confluent_kafka import KafkaError, KafkaException

from ..protocol.errors import ConfigError
from .addresses import Address, parse_addresses
from .assignments import parse_assignments
from .client_login import librdkafka_login, sasl_login
from .client_properties import DELEGATION_TOKEN
from .client_tls import tls_context
from .command_config import BOOTSTRAP_SERVERS, load_client_properties
from .command_config import ENVIRONMENT_VARIABLE as CONFIG_ENVIRONMENT_VARIABLE
from .quorum_probe import Probed, probe

# Not PENSTOCK_…: such variables are properties of a node.
ENVIRONMENT_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S: Final = 10.0

# What is said of it is said of the cluster, when that has no quorum.
_SILENT: Final = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT}
)

if TYPE_CHECKING:
    from .admin.credentials import AdminCredentials
    from .connection import Connection

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Which cluster, and how long to wait for an answer."""

    addresses: tuple[Address, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    # In librdkafka's names, as -X and --command-config give them. Passwords are among them.
    properties: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return ",".join(str(address) for address in self.addresses)

    @property
    def security_protocol(self) -> str:
        return self.properties.get("security.protocol", "plaintext").lower()

    def client_config(self, **defaults: str | float) -> dict[str, Any]:
        """librdkafka's configuration; in the names of `defaults` underscores are dots. What -X set wins.

        Raises ClickException when a token cannot be read.
        """
        return {
            "bootstrap.servers": str(self),
            "client.id": "penstock-terminal",
            **{name.replace("_", "."): value for name, value in defaults.items()},
            **librdkafka_login(self.properties),
        }

    def tls(self) -> ssl.SSLContext | None:
        """What was set of TLS, for what is asked without librdkafka. Raises ClickException."""
        return tls_context(self.properties) if self.security_protocol in ("ssl", "sasl_ssl") else None

    def admin_credentials(self) -> AdminCredentials:
        """How this client proves who it is over HTTP: as to brokers. Raises ClickException."""
        from .admin.credentials import AdminCredentials

        properties = self.properties
        checks_certificates = self.tls() if "ssl.ca.location" not in properties else tls_context(properties)
        if DELEGATION_TOKEN in properties or not self.security_protocol.startswith("sasl"):
            return AdminCredentials(tls=checks_certificates)
        login = sasl_login(properties)
        if login.username:
            return AdminCredentials.password(login.username, login.secret, checks_certificates)
        return AdminCredentials.token(login.secret, checks_certificates)

    async def connect(self, host: str, port: int) -> Connection:
        """A connection on which this client has proved who it is.

        Raises ClickException, KafkaError, CorruptData or OSError.
        """
        # Most commands ask with librdkafka alone.
        from .connection import connect
        from .sasl_login import authenticate

        login = sasl_login(self.properties) if self.security_protocol.startswith("sasl") else None
        connection = await connect(host, port, timeout_ms=int(self.timeout_s * 1000), tls=self.tls())
        if login is not None:
            try:
                await authenticate(connection, login)
            except BaseException:
                await connection.close()
                raise
        return connection

    def check_reachable(self, *, needs_quorum: bool = True) -> None:
        """Raises ClickException when no address takes a connection, or the cluster has no quorum, or speaks TLS and -X
        does not say so; Kafka's client would only ever say: timed out.
        """
        found = self._probe()
        if found.no_quorum is not None and needs_quorum:
            raise click.ClickException(f"{found.no_quorum}.")
        if found.tls_address is not None:
            raise click.ClickException(
                f"{found.tls_address} speaks TLS; add -X security.protocol=ssl and, unless its authority is one that "
                "the system trusts, -X ssl.ca.location=FILE."
            )
        if not found.refusals:
            return
        reasons = [f"{address}: {_reason(error)}" for address, error in found.refusals]
        hint = ""
        if str(self) == DEFAULT_BOOTSTRAP:
            hint = f" `penstock up` starts a cluster there; --bootstrap or {ENVIRONMENT_VARIABLE} names another."
        raise click.ClickException(f"No broker can be reached ({'; '.join(reasons)}).{hint}")

    def no_quorum(self) -> str | None:
        """The sentence, when no node of the cluster reaches a majority of the quorum's voters."""
        return self._probe().no_quorum

    def _login_failure(self) -> str | None:
        """Why a broker does not take the login: Kafka's client tries it again until the time is over."""
        if not self.security_protocol.startswith("sasl"):
            return None
        from ..protocol.errors import CorruptData
        from ..protocol.errors import KafkaError as BrokerError

        async def log_in() -> None:
            async with await self.connect(self.addresses[0].host, self.addresses[0].port):
                return

        try:
            asyncio.run(log_in())
        except BrokerError as error:
            return f"{str(error).removeprefix(f'{error.code.name}: ').rstrip('.')} ({error.code.name})."
        except (OSError, CorruptData, click.ClickException):
            # What the client said of it is as good.
            return None
        return None

    def _probe(self) -> Probed:
        try:
            tls = self.tls()
        except click.ClickException:
            # Kafka's client takes more than Python does, and has a sentence for what it does not take.
            return probe(self.addresses, timeout_s=self.timeout_s, tls=None, asks=False)
        # Behind SASL nothing is answered before it.
        return probe(
            self.addresses, timeout_s=self.timeout_s, tls=tls, asks=self.security_protocol in ("plaintext", "ssl")
        )

    @contextmanager
    def sentences(self) -> Iterator[None]:
        """What Kafka's client raises becomes one sentence with exit status 1."""
        try:
            yield
        except KafkaException as error:
            reason = error.args[0] if error.args else None
            if not isinstance(reason, KafkaError):
                raise click.ClickException(str(error)) from error
            raise click.ClickException(self.sentence(reason)) from error

    def sentence(self, error: KafkaError) -> str:
        """What to tell a person about an error of the client, or of a broker."""
        code = error.code()
        if code in _SILENT and (sentence := self.no_quorum()) is not None:
            return f"{sentence}."
        if code in _SILENT and (sentence := self._login_failure()) is not None:
            return sentence
        if code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            return f"{self} took the connection but gave no answer as a Kafka broker within {self.timeout_s:g} s."
        if code == KafkaError._INVALID_ARG:
            return f"The Kafka client refuses: {error.str()}"
        if code == KafkaError._MSG_TIMED_OUT:
            return "A record was not acknowledged in time; whether it was stored is not known."
        return f"{error.str().removeprefix('Broker: ').rstrip('.')} ({error.name()})."


def bootstrap_options(command: Callable[Concatenate[Bootstrap, _P], _R]) -> Callable[_P, _R]:
    """Gives a command the options of `Bootstrap`, and the value as first argument."""

    @click.option(
        "--bootstrap",
        "-b",
        "addresses",
        metavar="HOST:PORT,…",
        envvar=ENVIRONMENT_VARIABLE,
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        callback=_addresses,
        help="Brokers to ask first.",
    )
    @click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.1),
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for an answer.",
    )
    @click.option(
        "-X",
        "--client-property",
        "properties",
        metavar="KEY=VALUE",
        multiple=True,
        callback=parse_assignments,
        help="A property of the client, by Kafka's or librdkafka's name; may be repeated. Not for passwords.",
    )
    @click.option(
        "--command-config",
        "command_config_path",
        metavar="FILE",
        envvar=CONFIG_ENVIRONMENT_VARIABLE,
        show_envvar=True,
        help="A file of such properties; -X goes over it.",
    )
    @functools.wraps(command)
    def with_bootstrap(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        addresses = kwargs.pop("addresses")
        timeout_s = kwargs.pop("timeout_s")
        assignments = kwargs.pop("properties")
        command_config_path = kwargs.pop("command_config_path")
        assert isinstance(addresses, tuple)
        assert isinstance(timeout_s, float)
        assert isinstance(assignments, dict)
        assert command_config_path is None or isinstance(command_config_path, str)
        try:
            properties = load_client_properties(command_config_path, assignments, environment=os.environ)
            told = properties.pop(BOOTSTRAP_SERVERS, None)
            source = click.get_current_context().get_parameter_source("addresses")
            if told is not None and source is click.core.ParameterSource.DEFAULT:
                addresses = parse_addresses(told)
        except (ConfigError, ValueError) as error:
            raise click.UsageError(str(error)) from error
        bootstrap = Bootstrap(addresses=addresses, timeout_s=timeout_s, properties=properties)
        with bootstrap.sentences():
            return command(bootstrap, *args, **kwargs)

    return with_bootstrap


def _addresses(context: click.Context, parameter: click.Parameter, text: str) -> tuple[Address, ...]:
    try:
        return parse_addresses(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    if isinstance(error, TimeoutError):
        return "no answer"
    # asyncio puts words of its own in the place of the system's.
    return (os.strerror(error.errno) if error.errno else str(error)).lower()
