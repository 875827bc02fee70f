"""The mechanisms by which clients of each listener may prove themselves, as the configuration in effect has them."""

from __future__ import annotations

from collections.abc import Mapping

from ...configuration.sasl_config import PLAIN, MechanismConfig, SaslConfig
from .plain import PlainExchange, PlainUsers
from .sasl_exchange import BeginExchange


class SaslMechanisms:
    """Of the listeners of one node with SASL. An exchange that has begun goes on as it began."""

    def __init__(self, configs: Mapping[str, SaslConfig]) -> None:
        self._configs: Mapping[str, SaslConfig] = {}
        self._mechanisms: dict[str, dict[str, BeginExchange]] = {}
        self.change(configs)

    def change(self, configs: Mapping[str, SaslConfig]) -> None:
        """Takes over a configuration with other users, mechanisms or times (KIP-226)."""
        self._configs = configs
        self._mechanisms = {
            listener_name: {name: self._make(one) for name, one in config.mechanisms.items()}
            for listener_name, config in configs.items()
        }

    def names(self, listener_name: str) -> tuple[str, ...]:
        """Those that a listener offers; none for a listener without SASL."""
        return tuple(self._mechanisms.get(listener_name, ()))

    def find(self, listener_name: str, mechanism: str) -> BeginExchange | None:
        return self._mechanisms.get(listener_name, {}).get(mechanism)

    def max_reauth_ms(self, listener_name: str, mechanism: str) -> int:
        """How long a session lasts at most; 0: no limit."""
        config = self._configs.get(listener_name)
        one = None if config is None else config.mechanisms.get(mechanism)
        return 0 if one is None else one.max_reauth_ms

    def _make(self, config: MechanismConfig) -> BeginExchange:
        assert config.mechanism == PLAIN, f"{config.mechanism} is not a mechanism"
        assert config.jaas is not None, "PLAIN has users"
        users = PlainUsers(config.jaas.options)
        return lambda _context: PlainExchange(users)
