"""Where a cluster's HTTP administration listens, as DescribeConfigs of its brokers says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Final

import click

from .. import clock
from ..bootstrap import Bootstrap

CONFIG: Final = "admin.advertised.listeners"
BROKERS_ASKED_MAX: Final = 16
"""One that answers is enough; the others are for when that one goes away."""
HINT: Final = "--admin http://HOST:PORT asks a node over HTTP, also one that waits for its quorum."


def find_admin(bootstrap: Bootstrap) -> tuple[str, ...]:
    """The addresses of the first brokers that say theirs. Raises ClickException with what to do where none does."""
    from confluent_kafka import KafkaException

    try:
        bootstrap.check_reachable(needs_quorum=False)
    except click.ClickException as error:
        raise click.ClickException(f"{error.message} {HINT}") from error
    try:
        answers = _ask(bootstrap)
    except KafkaException as error:
        with bootstrap.sentences():
            raise
        raise AssertionError("it raises") from error
    return told_addresses(str(bootstrap), answers)


def told_addresses(asked: str, answers: Iterable[str | None]) -> tuple[str, ...]:
    """The addresses that brokers gave, each once; None is a broker without such a config. Raises ClickException."""
    answers = list(answers)
    addresses = dict.fromkeys(
        address.strip() for answer in answers if answer for address in answer.split(",") if address.strip()
    )
    if addresses:
        return tuple(addresses)
    if not answers:
        raise click.ClickException(f"No broker of {asked} says where its HTTP administration is. {HINT}")
    if "" in answers:
        raise click.ClickException(
            f"The nodes of {asked} have no HTTP administration: admin.listeners is empty. Set it to http://HOST:PORT."
        )
    raise click.ClickException(
        f"The brokers of {asked} have no HTTP administration: only Penstock's nodes have one, Apache Kafka's do not."
    )


def _ask(bootstrap: Bootstrap) -> Sequence[str | None]:
    """What the brokers say that answer together with the first one. Raises KafkaException."""
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    from ..client_log import SILENT_LOGGER

    admin = AdminClient(bootstrap.client_config(), logger=SILENT_LOGGER)
    nodes = admin.describe_cluster(request_timeout=bootstrap.timeout_s).result().nodes
    # librdkafka takes one broker in a request.
    futures: list[Future[Any]] = [
        future
        for node in nodes[:BROKERS_ASKED_MAX]
        for future in admin.describe_configs(
            [ConfigResource(ResourceType.BROKER, str(node.id))], request_timeout=bootstrap.timeout_s
        ).values()
    ]
    deadline_s = clock.monotonic_s() + bootstrap.timeout_s
    pending = set(futures)
    while pending and not any(_is_answered(future) for future in futures):
        _, pending = wait(pending, timeout=max(0.0, deadline_s - clock.monotonic_s()), return_when=FIRST_COMPLETED)
        if clock.monotonic_s() >= deadline_s:
            break
    answers = [future.result() for future in futures if _is_answered(future)]
    if not answers and any(future.done() and _is_denied(future.exception()) for future in futures):
        raise click.ClickException(
            "Brokers say where their HTTP administration is in their configs, which this client may not describe "
            f"(DESCRIBE_CONFIGS on the cluster). {HINT}"
        )
    return [None if CONFIG not in answer else answer[CONFIG].value or "" for answer in answers]


def _is_denied(failure: BaseException | None) -> bool:
    from confluent_kafka import KafkaError, KafkaException

    return isinstance(failure, KafkaException) and failure.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def _is_answered(future: Future[Any]) -> bool:
    return future.done() and future.exception() is None
