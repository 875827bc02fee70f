"""Handlers whose modules are loaded when they are first asked for, or soon after the node has started."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from importlib import import_module

from ...protocol.apis import ApiKey
from ...protocol.own_apis import OwnApiKey
from ..network.handlers import Handlers, Register


def add_modules(
    handlers: Handlers, package: str | None, modules: Mapping[str, Collection[ApiKey | OwnApiKey]], parts: object
) -> None:
    """Each module of the `package` has `register`, which is given the handlers and the `parts`, and adds its APIs."""
    for module, api_keys in modules.items():
        handlers.add_later(api_keys, partial(_load, module, package, parts))


def _load(module: str, package: str | None, parts: object) -> Register:
    register = import_module(f".{module}", package).register
    return lambda handlers: register(handlers, parts)
