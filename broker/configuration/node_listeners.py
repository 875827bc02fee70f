"""Listeners of one node: security protocols, what is advertised, where brokers reach each other, TLS and SASL."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...protocol.errors import ConfigError
from .admin_listeners import ADMIN, ADMIN_MECHANISMS, HTTPS, AdminListener
from .listener_config import ListenerConfig, check_distinct_ports, parse_listeners, parse_protocol_map
from .node_proof import CONTROLLER_MECHANISM, INTER_BROKER_MECHANISM
from .property_values import PropertyValues
from .sasl_config import SaslConfig, check_node_mechanism, read_sasl, sasl_keys_of
from .tls_config import TlsConfig, check_served, keys_of, read_tls


def security_protocols(values: PropertyValues) -> dict[str, str]:
    """Security protocol by listener name. As in Kafka, the controller's are PLAINTEXT unless a map was given."""
    key = "listener.security.protocol.map"
    protocols = parse_protocol_map(values.text_or_none(key) or "")
    if not values.is_set(key):
        for name in values.strings("controller.listener.names"):
            protocols.setdefault(name.upper(), "PLAINTEXT")
    return protocols


def controller_listener_name(values: PropertyValues) -> str:
    """The first of `controller.listener.names`, the one on which controllers are reached; empty without any."""
    return next(iter(values.strings("controller.listener.names")), "").upper()


def advertised_listeners(
    values: PropertyValues,
    protocols: Mapping[str, str],
    listeners: Sequence[ListenerConfig],
    controller_names: set[str],
) -> tuple[ListenerConfig, ...]:
    key = "advertised.listeners"
    if "broker" not in values.strings("process.roles"):
        return ()
    if not listeners:
        raise ConfigError("listeners must name at least one listener that is not in controller.listener.names.")
    check_distinct_ports("listeners", listeners)
    texts = values.strings(key)
    named = parse_listeners(key, texts, protocols) if texts else tuple(listeners)
    advertised = tuple(listener for listener in named if listener.name not in controller_names)
    if not advertised:
        raise ConfigError(f"{key} must name at least one listener that is not in controller.listener.names.")
    for listener in advertised:
        if listener.name not in {bound.name for bound in listeners}:
            raise ConfigError(f"{key} names {listener.name}, which listeners does not.")
        if texts and listener.host == "0.0.0.0":
            raise ConfigError(f"{key} must hold addresses that clients can reach, but one is {listener}.")
    return advertised if texts else tuple(map(_reachable, advertised))


def _reachable(listener: ListenerConfig) -> ListenerConfig:
    """A bind to every interface is advertised by the machine's name."""
    host = "" if listener.host in {"0.0.0.0", "::"} else listener.host
    return ListenerConfig(
        name=listener.name, host=host, port=listener.port, security_protocol=listener.security_protocol
    )


def inter_broker_listener_name(values: PropertyValues, advertised: Sequence[ListenerConfig]) -> str:
    """The listener of this broker for other nodes; of a controller, the one of brokers where it asks them.

    Raises ConfigError.
    """
    name = values.text_or_none("inter.broker.listener.name")
    protocol = values.text_or_none("security.inter.broker.protocol")
    if name is not None and values.is_set("security.inter.broker.protocol"):
        raise ConfigError("Only one of inter.broker.listener.name and security.inter.broker.protocol may be set.")
    if "broker" not in values.strings("process.roles"):
        return (name or protocol or "").upper()
    if name is not None:
        if name.upper() not in {listener.name for listener in advertised}:
            raise ConfigError(f"inter.broker.listener.name is {name}, which advertised.listeners does not name.")
        return name.upper()
    names = [listener.name for listener in advertised]
    if protocol in names:
        return str(protocol)
    raise ConfigError(
        f"inter.broker.listener.name must be one of {', '.join(names)}: none of these listeners is named {protocol}, "
        "which security.inter.broker.protocol would choose."
    )


def tls_of_listeners(
    values: PropertyValues,
    protocols: Mapping[str, str],
    listeners: Sequence[ListenerConfig],
    inter_broker_name: str,
    admin_listeners: Sequence[AdminListener],
) -> Mapping[str, TlsConfig]:
    """Of the listeners that this node has, HTTP's among them, and of the controller's and the brokers', to which it
    connects."""
    served = {listener.name for listener in listeners}
    named = {*served, inter_broker_name, controller_listener_name(values)}
    # The one class that it can name is what makes principals here.
    values.used.add("principal.builder.class")
    found = {}
    for name in sorted(named):
        protocol = protocols.get(name, "PLAINTEXT")
        if protocol in ("SSL", "SASL_SSL"):
            # Clients that prove themselves by SASL show certificates only where their listener itself asks (KIP-684).
            found[name] = read_tls(values.properties, name, is_client_auth_inherited=protocol == "SSL")
            values.used.update(keys_of(name))
            if name in served:
                check_served(found[name])
    if any(listener.scheme == HTTPS for listener in admin_listeners):
        found[ADMIN] = read_tls(values.properties, ADMIN)
        values.used.update(keys_of(ADMIN))
        check_served(found[ADMIN])
    return MappingProxyType(found)


def sasl_of_listeners(
    values: PropertyValues, listeners: Sequence[ListenerConfig], inter_broker_name: str
) -> Mapping[str, SaslConfig]:
    """Of the listeners that this node has, HTTP's among them. Raises ConfigError."""
    found = {}
    if any(listener.name == ADMIN for listener in listeners):
        raise ConfigError(f"No listener can be named {ADMIN}: its keys are those of the HTTP administration.")
    if ADMIN_MECHANISMS in values.properties:
        found[ADMIN] = read_sasl(values.properties, ADMIN)
        values.used.update(sasl_keys_of(ADMIN))
    for listener in listeners:
        if listener.security_protocol.startswith("SASL"):
            found[listener.name] = read_sasl(values.properties, listener.name)
            values.used.update(sasl_keys_of(listener.name))
    for key, name in (
        (INTER_BROKER_MECHANISM, inter_broker_name),
        (CONTROLLER_MECHANISM, controller_listener_name(values)),
    ):
        mechanism = values.text_or_none(key)
        if values.is_set(key) and mechanism and name in found:
            check_node_mechanism(key, mechanism, found[name])
    return MappingProxyType(found)
