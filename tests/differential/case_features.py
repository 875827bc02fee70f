"""UpdateFeatures and UnregisterBroker: what changes the cluster as a whole. Each case leaves it as it was."""

from __future__ import annotations

from typing import Any

from differential.script import TIMEOUT_MS, Run, case

from penstock.protocol.apis import ApiKey

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
ABSENT_BROKER = 1_000_007
NAMES = ("group.version", "transaction.version", "eligible.leader.replicas.version", "metadata.version")


def update(feature: str, level: int, kind: int = UPGRADE, *, allow_downgrade: bool = False) -> dict[str, Any]:
    return {"feature": feature, "max_version_level": level, "upgrade_type": kind, "allow_downgrade": allow_downgrade}


@case(ApiKey.UPDATE_FEATURES)
def update_features(run: Run) -> None:
    def ask(step: str, *updates: dict[str, Any], validate_only: bool = False) -> None:
        run.ask(step, timeout=TIMEOUT_MS, feature_updates=list(updates), validate_only=validate_only)

    ask("nothing")
    ask("nothing, only validated", validate_only=True)
    for place, name in enumerate(("", "unknown", "x" * 300)):
        ask(f"unknown feature {place}", update(name, 1))
        ask(f"unknown feature {place} to nothing", update(name, 0, SAFE_DOWNGRADE))
    for name in NAMES:
        ask(f"{name} too high", update(name, 99))
        ask(f"{name} negative", update(name, -1))
        ask(f"{name} much too low", update(name, -32768, UNSAFE_DOWNGRADE))
    ask("transaction.version as it is", update("transaction.version", 2))
    ask("transaction.version as it is, by downgrade", update("transaction.version", 2, SAFE_DOWNGRADE))
    ask("metadata.version as it is", update("metadata.version", 30))
    ask("metadata.version as it is, by downgrade", update("metadata.version", 30, SAFE_DOWNGRADE))
    ask("metadata.version above", update("metadata.version", 31))
    for level in (0, 6, 7, 29):
        ask(f"metadata.version {level}", update("metadata.version", level))
        ask(f"metadata.version {level}, allowed", update("metadata.version", level, allow_downgrade=True))
        ask(f"metadata.version {level}, safe", update("metadata.version", level, SAFE_DOWNGRADE))
        ask(f"metadata.version {level}, unsafe", update("metadata.version", level, UNSAFE_DOWNGRADE))
    for kind in (0, 4, -1, 127):
        ask(f"upgrade type {kind}", update("transaction.version", 2, kind))
    ask("one of two is wrong", update("transaction.version", 2), update("group.version", 99))
    ask("the same twice", update("group.version", 1), update("group.version", 1))
    ask("the same twice, first wrong", update("group.version", 99), update("group.version", 1))
    ask("the same twice, second wrong", update("group.version", 1), update("group.version", 99))
    ask("the quorum's own as it is", update("kraft.version", 0))


@case(ApiKey.UPDATE_FEATURES, versions=(0,))
def update_features_allowing_downgrades(run: Run) -> None:
    for level in (1, 2):
        updates = [update("transaction.version", level, allow_downgrade=True)]
        run.ask(f"to {level}", timeout=TIMEOUT_MS, feature_updates=updates)
        run.note(f"at {level}", finalized(run))


@case(ApiKey.UPDATE_FEATURES, versions=(1, 2))
def features_go_down_and_up(run: Run) -> None:
    def ask(step: str, *updates: dict[str, Any], validate_only: bool = False) -> None:
        run.ask(step, timeout=TIMEOUT_MS, feature_updates=list(updates), validate_only=validate_only)

    for name, level in (
        ("transaction.version", 2),
        ("group.version", 1),
        ("eligible.leader.replicas.version", 1),
    ):
        ask(f"{name} down by upgrade", update(name, level - 1))
        ask(f"{name} down, only validated", update(name, level - 1, SAFE_DOWNGRADE), validate_only=True)
        run.note(f"{name} is as it was", finalized(run))
        ask(f"{name} down", update(name, level - 1, SAFE_DOWNGRADE))
        wait_level(run, name, level - 1)
        run.note(f"{name} is down", finalized(run))
        ask(f"{name} up by downgrade", update(name, level, UNSAFE_DOWNGRADE))
        ask(f"{name} up, only validated", update(name, level), validate_only=True)
        ask(f"{name} up", update(name, level))
        wait_level(run, name, level)
        run.note(f"{name} is up", finalized(run))
    ask(
        "all to nothing, unsafe",
        *(update(name, 0, UNSAFE_DOWNGRADE) for name in ("group.version", "transaction.version")),
    )
    run.wait_for(lambda: not finalized(run).keys() & {"group.version", "transaction.version"})
    ask("all up", update("group.version", 1), update("transaction.version", 2))
    run.wait_for(lambda: finalized(run).keys() >= {"group.version", "transaction.version"})


def finalized(run: Run) -> dict[str, int]:
    """The levels of those features that both have."""
    answer = run.quiet(ApiKey.API_VERSIONS, client_software_name="script", client_software_version="1.0")
    levels = {one["name"]: one["max_version_level"] for one in answer["finalized_features"]}
    return {name: levels[name] for name in NAMES if name in levels}


def wait_level(run: Run, name: str, level: int) -> None:
    run.wait_for(lambda: finalized(run).get(name, 0) == level)


@case(ApiKey.UPDATE_FEATURES, versions=(2,))
def eligible_leaders_and_their_configs(run: Run) -> None:
    """While ELR is off `min.insync.replicas` may be removed and set for one broker; turning it on settles that."""
    name = "eligible.leader.replicas.version"

    def set_level(level: int, kind: int) -> None:
        run.ask(f"to {level}", timeout=TIMEOUT_MS, feature_updates=[update(name, level, kind)])
        wait_level(run, name, level)

    def alter(step: str, broker: str, operation: int, value: str | None = None) -> None:
        config = {"name": "min.insync.replicas", "config_operation": operation, "value": value}
        resource = {"resource_type": 4, "resource_name": broker, "configs": [config]}
        run.ask(step, ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=False)

    def describe(step: str, broker: str) -> None:
        resource = {"resource_type": 4, "resource_name": broker, "configuration_keys": ["min.insync.replicas"]}
        run.ask(step, ApiKey.DESCRIBE_CONFIGS, resources=[resource], include_synonyms=True)

    alter("removed, on", "", 1)
    alter("set for one, on", "1", 0, "1")
    set_level(0, SAFE_DOWNGRADE)
    describe("default, off", "")
    alter("set for one, off", "1", 0, "1")
    alter("removed, off", "", 1)
    run.wait_for(lambda: not dynamic(run, ""))
    describe("one, off", "1")
    set_level(1, UPGRADE)
    run.wait_for(lambda: bool(dynamic(run, "")) and not dynamic(run, "1"))
    describe("one, on again", "1")
    describe("default, on again", "")


def dynamic(run: Run, broker: str) -> list[str]:
    resource = {"resource_type": 4, "resource_name": broker, "configuration_keys": ["min.insync.replicas"]}
    (result,) = run.quiet(ApiKey.DESCRIBE_CONFIGS, resources=[resource])["results"]
    own = 2 if broker else 3
    return [one["value"] for one in result["configs"] if one["config_source"] == own]


@case(ApiKey.UNREGISTER_BROKER)
def unregister_broker(run: Run) -> None:
    for broker in (ABSENT_BROKER, -1, -2147483648):
        run.ask(f"broker {broker}", broker_id=broker)
