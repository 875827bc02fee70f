"""Penstock's ASK_FOR_CLIENT: what another node asks in the name of a client, by that client's permissions.

The HTTP administration of a node asks other brokers so (`broker/network/rules/client_envelope.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.own_apis import OwnApiKey, encode_own_response
from ..network.dispatch import Dispatcher
from ..network.handlers import Handlers
from ..network.own_requests import OwnRequests
from ..network.peer_log import PeerLog
from ..network.request import Authorizer, Request, RequestContext
from ..network.rules.client_envelope import ClientEnvelope, decode_envelope, encode_answer, encode_refusal

_NOT_A_NODE = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Only nodes of the cluster ask for clients.")


def register(
    handlers: Handlers, loop: asyncio.AbstractEventLoop, peer_log: PeerLog, authorizer: Authorizer | None
) -> None:
    """Requests inside are answered by `handlers`. `authorizer` is that of their clients."""
    own = OwnRequests(handlers, loop)
    dispatcher = Dispatcher(handlers, loop, peer_log)

    def begin(request: Request) -> Awaitable[None] | None:
        if request.context.node_id is None:
            request.respond(encode_own_response(request.correlation_id, encode_refusal(_NOT_A_NODE)))
            return None
        return answer(request, decode_envelope(request.body[request.body_offset :]))

    async def answer(request: Request, envelope: ClientEnvelope) -> None:
        context = RequestContext(
            listener_name=request.context.listener_name,
            peer_host=envelope.host,
            client_id=request.client_id,
            principal=envelope.principal,
            is_token_authenticated=envelope.is_token_authenticated,
            authorizer=authorizer,
        )
        try:
            told = encode_answer(await own.ask_frame(dispatcher.begin, memoryview(envelope.frame), context))
        except KafkaError as error:
            told = encode_refusal(error)
        request.respond(encode_own_response(request.correlation_id, told))

    handlers.add(OwnApiKey.ASK_FOR_CLIENT, begin)
