"""Connections a second that prove who they are: each is new, and closed when the broker has said that all is well.

So many are opened side by side by one thread that the broker always has one to go on with. The client is prepared
bytes and a few hash values; how much of a core it had is told beside, as it must not be what decides. Sessions of TLS
are not resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Final

from ...local.local_node import HOST
from ..sasl_exchange import Login, PlainLogin, ScramLogin
from ..secured_node import PASSWORD, SASL_PLAINTEXT, SASL_SSL, USER, add_scram_user, secured
from ..target import Target
from ..tls_socket import TlsSocket, client_context
from ..usage import measured
from ..wire import Socket

SCRAM: Final = "SCRAM-SHA-512"
_SIDE_BY_SIDE: Final = 16
_MILLISECONDS: Final = 1e3


def sasl(
    target: Target, *, mechanism: str, connections: int, warm_up_connections: int, is_tls: bool = False
) -> Mapping[str, float | None]:
    """Open so many connections."""
    with secured(target) as node:
        login: Login = PlainLogin(USER, PASSWORD)
        if mechanism == SCRAM:
            add_scram_user(node.target, mechanism)
            login = ScramLogin(mechanism, USER, PASSWORD)
        address = HOST, node.ports[SASL_SSL if is_tls else SASL_PLAINTEXT]
        context = client_context(node.authority)

        def connect() -> Socket | TlsSocket:
            return TlsSocket(address, context) if is_tls else Socket(address)

        rounds = max(1, connections // _SIDE_BY_SIDE)
        _connect_all(connect, login, warm_up_connections // _SIDE_BY_SIDE)
        with measured(node.target.pids) as usage:
            _connect_all(connect, login, rounds)
    count = rounds * _SIDE_BY_SIDE
    cpu_s = usage.broker_cpu_s
    return {
        "connects_per_s": count / usage.seconds,
        "connect_broker_cpu_ms": None if cpu_s is None else cpu_s / count * _MILLISECONDS,
        "connect_client_cpu_ms": usage.client_cpu_s / count * _MILLISECONDS,
        "connect_client_cores": usage.client_cpu_s / usage.seconds,
        "others_cores": usage.others_cores,
    }


def _connect_all(connect: Callable[[], Socket | TlsSocket], login: Login, rounds: int) -> None:
    for _ in range(rounds):
        with ExitStack() as stack:
            opened = [connect() for _ in range(_SIDE_BY_SIDE)]
            for connection in opened:
                stack.callback(connection.close)
            for connection in opened:
                if isinstance(connection, TlsSocket):
                    connection.finish_handshake()
            going_on = [(connection, login.exchange()) for connection in opened]
            for connection, exchange in going_on:
                connection.send(next(exchange))
            while going_on:
                still = []
                for connection, exchange in going_on:
                    try:
                        connection.send(exchange.send(connection.receive_answer()))
                    except StopIteration:
                        continue
                    still.append((connection, exchange))
                going_on = still
