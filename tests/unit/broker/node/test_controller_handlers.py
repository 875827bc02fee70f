"""What a controller serves, with its code loaded and before."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

from penstock.broker.network.handlers import Handlers, Load, Register
from penstock.broker.node.controller_handlers.dependencies import ControllerHandlerDependencies
from penstock.broker.node.controller_handlers.table import LATER, register


def test_what_is_loaded_later_is_what_was_told_before() -> None:
    parts: Any = Mock(spec_set=ControllerHandlerDependencies.__struct_fields__)
    handlers = Handlers()
    register(handlers, parts)
    told = handlers.built

    async def in_thread(load: Load) -> Register:
        return load()

    asyncio.run(handlers.load_all(in_thread))
    assert handlers.built == told
    assert {int(key) for keys in LATER.values() for key in keys} < {
        *handlers.by_bytes, *handlers.by_message, *handlers.by_reply
    }  # fmt: skip
