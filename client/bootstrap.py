"""How commands reach a cluster: the options they share, and sentences for what goes wrong on the way."""

import functools
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Concatenate, Final, ParamSpec, TypeVar

import click
from confluent_kafka import KafkaError, KafkaException

from .addresses import Address, parse_addresses
from .assignments import parse_assignments
from .quorum_probe import Probed, probe

# Not PENSTOCK_…: such variables are properties of a node.
ENVIRONMENT_VARIABLE: Final = "KAFKA_BOOTSTRAP_SERVERS"
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S: Final = 10.0

# What is said of it is said of the cluster, when that has no quorum.
_SILENT: Final = frozenset(
    {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._MSG_TIMED_OUT}
)

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Which cluster, and how long to wait for an answer."""

    addresses: tuple[Address, ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    # librdkafka's own properties, as -X gives them.
    properties: Mapping[str, str]

    def __str__(self) -> str:
        return ",".join(str(address) for address in self.addresses)

    def client_config(self, **defaults: str | float) -> dict[str, str | int | float | bool]:
        """librdkafka's configuration; in the names of `defaults` underscores are dots. What -X set wins."""
        return {
            "bootstrap.servers": str(self),
            "client.id": "penstock-terminal",
            **{name.replace("_", "."): value for name, value in defaults.items()},
            **self.properties,
        }

    def tls(self) -> ssl.SSLContext | None:
        """What -X says of TLS, for what is asked without librdkafka. Raises ClickException."""
        if self.properties.get("security.protocol", "plaintext").lower() != "ssl":
            return None
        certificate = self.properties.get("ssl.certificate.location")
        try:
            context = ssl.create_default_context(cafile=self.properties.get("ssl.ca.location"))
            if certificate is not None:
                context.load_cert_chain(
                    certificate,
                    self.properties.get("ssl.key.location"),
                    # Without any, OpenSSL would ask for it on the terminal.
                    password=self.properties.get("ssl.key.password", ""),
                )
        except (OSError, ValueError) as error:
            raise click.ClickException(f"The certificates that -X names cannot be used: {error}.") from error
        if self.properties.get("ssl.endpoint.identification.algorithm") == "none":
            context.check_hostname = False
        if self.properties.get("enable.ssl.certificate.verification") == "false":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

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

    def _probe(self) -> Probed:
        protocol = self.properties.get("security.protocol", "plaintext").lower()
        try:
            tls = self.tls()
        except click.ClickException:
            # Kafka's client takes more than Python does, and has a sentence for what it does not take.
            return probe(self.addresses, timeout_s=self.timeout_s, tls=None, asks=False)
        # Behind SASL nothing is answered before it.
        return probe(self.addresses, timeout_s=self.timeout_s, tls=tls, asks=protocol in ("plaintext", "ssl"))

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
        help="A property of the Kafka client (librdkafka); may be repeated.",
    )
    @functools.wraps(command)
    def with_bootstrap(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        addresses = kwargs.pop("addresses")
        timeout_s = kwargs.pop("timeout_s")
        properties = kwargs.pop("properties")
        assert isinstance(addresses, tuple)
        assert isinstance(timeout_s, float)
        assert isinstance(properties, dict)
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
