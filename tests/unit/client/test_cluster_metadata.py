"""Metadata are asked for again until a broker answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from penstock.client.cluster_metadata import ask_metadata

ANSWER = ClusterMetadata()


class ScriptedAdmin:
    """Raises these errors, one a call, and then answers."""

    def __init__(self, errors: Iterator[int]) -> None:
        self._errors = errors
        self.asked: list[str | None] = []

    def list_topics(self, topic: str | None, *, timeout: float) -> ClusterMetadata:
        assert timeout > 0
        self.asked.append(topic)
        code = next(self._errors, None)
        if code is not None:
            raise KafkaException(KafkaError(code))
        return ANSWER


def asking(admin: ScriptedAdmin, *, timeout_s: float = 60.0) -> ClusterMetadata:
    return ask_metadata(cast(AdminClient, admin), "flights", timeout_s=timeout_s)


def test_a_request_without_an_answer_is_made_again() -> None:
    admin = ScriptedAdmin(iter([KafkaError._TIMED_OUT, KafkaError._TRANSPORT]))
    assert asking(admin) is ANSWER
    assert admin.asked == ["flights"] * 3


def test_a_refusal_is_not() -> None:
    admin = ScriptedAdmin(iter([KafkaError.CLUSTER_AUTHORIZATION_FAILED]))
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        asking(admin)
    assert len(admin.asked) == 1


def test_silence_ends_with_the_time() -> None:
    admin = ScriptedAdmin(iter([KafkaError._TIMED_OUT] * 2))
    with pytest.raises(KafkaException, match="_TIMED_OUT"):
        asking(admin, timeout_s=0)
    assert len(admin.asked) == 1
