"""Whether a topic's configs of tiered storage can be (KIP-405, KIP-950): Kafka's rules and sentences.

Kafka: `LogConfig.validateTopicLogConfigValues`.
"""

from collections.abc import Mapping
from typing import Final

from ...protocol.errors import ErrorCode, KafkaError
from .definition import ConfigValue

ENABLED: Final = "remote.storage.enable"
SYSTEM_ENABLED: Final = "remote.log.storage.system.enable"
_COPY_DISABLED: Final = "remote.log.copy.disable"
_DELETE_ON_DISABLE: Final = "remote.log.delete.on.disable"
_AS_RETENTION: Final = -2
_UNITS: Final = ("bytes", "ms")


def validate_tier(values: Mapping[str, ConfigValue], existing: Mapping[str, str], *, is_system_enabled: bool) -> None:
    """`values` are those of every key as they will be, `existing` what is set now. Raises KafkaError INVALID_CONFIG."""
    if values[ENABLED] is not True:
        _check_switched_off(values, existing)
        return
    if not is_system_enabled:
        raise _invalid(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    policy = values["cleanup.policy"]
    if isinstance(policy, tuple) and "compact" in policy:
        raise _invalid("Remote log storage is unsupported for the compacted topics")
    for unit in _UNITS:
        total, local = _limits(values, unit)
        if total > -1 and local not in (_AS_RETENTION, total):
            start = f"Invalid value {local} for configuration local.retention.{unit}: Value must not be"
            if local == -1:
                raise _invalid(f"{start} -1 as retention.{unit} value is set as {total}.")
            if local > total:
                raise _invalid(f"{start} more than retention.{unit} property value: {total}")
    if values[_COPY_DISABLED] is True:
        for unit in _UNITS:
            total, local = _limits(values, unit)
            if local not in (_AS_RETENTION, total):
                raise _invalid(
                    f"When `{_COPY_DISABLED}` is set to true, the `local.retention.{unit}` and `retention.{unit}` "
                    "must be set to the identical value because there will be no more logs copied to the remote "
                    "storage."
                )


def _check_switched_off(values: Mapping[str, ConfigValue], existing: Mapping[str, str]) -> None:
    was_enabled = existing.get(ENABLED, "").strip().lower() == "true"
    if was_enabled and values[_DELETE_ON_DISABLE] is not True:
        raise _invalid(
            "It is invalid to disable remote storage without deleting remote data. If you want to keep the remote data "
            f"and turn to read only, please set `{ENABLED}=true,{_COPY_DISABLED}=true`. If you want to disable remote "
            f"storage and delete all remote data, please set `{ENABLED}=false,{_DELETE_ON_DISABLE}=true`."
        )


def _limits(values: Mapping[str, ConfigValue], unit: str) -> tuple[int, int]:
    total, local = values[f"retention.{unit}"], values[f"local.retention.{unit}"]
    assert isinstance(total, int)
    assert isinstance(local, int)
    return total, local


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
