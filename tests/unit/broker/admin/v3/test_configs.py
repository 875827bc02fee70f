"""Configs of topics, of a broker and of all brokers, and ACLs, by Confluent's REST API."""

from __future__ import annotations

from typing import Any

from rest_node import BROKER, RestNode, names, run_with


def by_name(answer: Any) -> dict[str, Any]:
    return {one["name"]: one for one in answer["data"]}


def test_configs_of_a_topic_are_set_altered_and_reset() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        path = "/topics/t/configs"
        await node.ask("PUT", f"{path}/retention.ms", {"value": "7"}, status=204)
        config = await node.get(f"{path}/retention.ms")
        assert (config["kind"], config["topic_name"], config["value"]) == ("KafkaTopicConfig", "t", "7")
        assert (config["source"], config["is_default"], config["is_read_only"]) == (
            "DYNAMIC_TOPIC_CONFIG",
            False,
            False,
        )
        assert config["metadata"]["resource_name"].endswith("/topic=t/config=retention.ms")
        assert config["synonyms"][0] == {"name": "retention.ms", "value": "7", "source": "DYNAMIC_TOPIC_CONFIG"}
        listed = await node.get(path)
        assert listed["kind"] == "KafkaTopicConfigList"
        assert by_name(listed)["retention.ms"] == config
        changes = [
            {"name": "retention.ms", "operation": "DELETE"},
            {"name": "segment.ms", "value": "60000"},
            {"name": "cleanup.policy", "value": "compact", "operation": "APPEND"},
        ]
        await node.ask("POST", f"{path}:alter", {"data": changes, "validate_only": True}, status=204)
        assert by_name(await node.get(path))["segment.ms"]["is_default"] is True
        await node.ask("POST", f"{path}:alter", {"data": changes}, status=204)
        altered = by_name(await node.get(path))
        assert altered["retention.ms"]["is_default"] is True
        assert altered["segment.ms"]["value"] == "60000"
        assert altered["cleanup.policy"]["value"] == "delete,compact"
        await node.ask("DELETE", f"{path}/segment.ms", status=204)
        assert (await node.get(f"{path}/segment.ms"))["is_default"] is True

    run_with(test)


def test_default_configs_of_a_topic_are_those_without_its_own() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", retention_ms="7")
        defaults = await node.get("/topics/t/default-configs")
        assert defaults["kind"] == "KafkaTopicDefaultConfigList"
        default = by_name(defaults)["retention.ms"]
        assert (default["value"], default["source"]) == ("99", "STATIC_BROKER_CONFIG")
        assert default["synonyms"][0]["name"] == "log.retention.ms"

    run_with(test, log_retention_ms="99")


def test_a_default_that_the_synonyms_do_not_say_is_told_too() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t", retention_ms="7", segment_ms="8")
        defaults = by_name(await node.get("/topics/t/default-configs"))
        retention, segment = defaults["retention.ms"], defaults["segment.ms"]
        assert (retention["value"], retention["source"], retention["is_default"]) == (
            "604800000",
            "DEFAULT_CONFIG",
            True,
        )
        # In hours there.
        assert (segment["value"], segment["source"], segment["is_default"]) == (
            "7200000",
            "STATIC_BROKER_CONFIG",
            False,
        )
        await node.create("plain")
        plain = by_name(await node.get("/topics/plain/default-configs"))
        assert plain.keys() == defaults.keys()
        assert plain["retention.ms"]["value"] == retention["value"]
        assert plain["segment.ms"]["value"] == segment["value"]

    run_with(test, log_roll_hours="2")


def test_configs_of_all_topics_come_page_by_page() -> None:
    async def test(node: RestNode) -> None:
        await node.create("a", segment_ms="1")
        await node.create("b", segment_ms="2")
        of_a = names(await node.get("/topics/a/configs"), "name")
        found = []
        path = f"{node.root}/topics/-/configs?page_size={len(of_a) - 1}"
        while path:
            answer = await (await node.session.get(path)).json()
            found += [(one["topic_name"], one["name"]) for one in answer["data"]]
            path = answer["metadata"]["next"]
        assert found == [(topic, name) for topic in ("a", "b") for name in of_a]

    run_with(test)


def test_configs_of_a_broker_and_of_all_brokers() -> None:
    async def test(node: RestNode) -> None:
        own = f"/brokers/{BROKER}/configs"
        listed = await node.get(own)
        assert listed["kind"] == "KafkaBrokerConfigList"
        node_id = by_name(listed)["node.id"]
        assert (node_id["value"], node_id["broker_id"], node_id["is_read_only"]) == (str(BROKER), BROKER, True)
        assert (await node.get("/brokers/-/configs"))["data"] == listed["data"]
        before = (await node.get("/broker-configs"))["data"]
        assert [one["name"] for one in before] == ["min.insync.replicas"]
        await node.get("/broker-configs/max.connections", status=404)
        await node.ask("PUT", "/broker-configs/max.connections", {"value": "900"}, status=204)
        config = await node.get("/broker-configs/max.connections")
        assert (config["kind"], config["config_type"], config["value"]) == ("KafkaClusterConfig", "BROKER", "900")
        assert config["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
        assert config["metadata"]["resource_name"].endswith("/broker-config=max.connections")
        assert (await node.get("/broker-configs"))["data"] == [config, *before]
        await node.ask("PUT", f"{own}/max.connections", {"value": "800"}, status=204)
        assert (await node.get(f"{own}/max.connections"))["value"] == "800"
        change = {"data": [{"name": "max.connections", "operation": "DELETE"}]}
        await node.ask("POST", f"{own}:alter", change, status=204)
        assert (await node.get(f"{own}/max.connections"))["source"] == "DYNAMIC_DEFAULT_BROKER_CONFIG"
        await node.ask("POST", "/broker-configs:alter", change, status=204)
        assert (await node.get("/broker-configs"))["data"] == before
        await node.ask("PUT", f"{own}/max.connections", {"value": "800"}, status=204)
        await node.ask("DELETE", f"{own}/max.connections", status=204)
        await node.ask("DELETE", "/broker-configs/max.connections", status=204)
        assert (await node.get(f"{own}/max.connections"))["is_default"] is True

    run_with(test)


def test_what_kafka_refuses_has_its_code() -> None:
    async def test(node: RestNode) -> None:
        await node.create("t")
        assert await node.refused("PUT", "/topics/t/configs/nothing", {"value": "1"}, status=400) == "INVALID_CONFIG"
        assert await node.refused("PUT", "/topics/t/configs/segment.ms", {"value": "x"}, status=400) == "INVALID_CONFIG"
        assert await node.refused("PUT", "/topics/t/configs/segment.ms", {}, status=400) == "INVALID_REQUEST"
        assert await node.refused("GET", "/topics/t/configs/nothing", status=404) == "Not Found"
        for method, path, body in (
            ("GET", "/topics/u/configs", None),
            ("GET", "/topics/u/default-configs", None),
            ("GET", "/topics/u/configs/segment.ms", None),
            ("PUT", "/topics/u/configs/segment.ms", {"value": "1"}),
            ("DELETE", "/topics/u/configs/segment.ms", None),
            ("POST", "/topics/u/configs:alter", {"data": []}),
        ):
            assert await node.refused(method, path, body, status=404) == "UNKNOWN_TOPIC_OR_PARTITION", path
        refused = await node.refused("PUT", f"/brokers/{BROKER}/configs/node.id", {"value": "4"}, status=400)
        assert refused == "INVALID_REQUEST"
        for path in ("/brokers/9", "/brokers/9/configs", "/brokers/9/configs/node.id", "/brokers/9/partition-replicas"):
            assert await node.refused("GET", path, status=404) == "BROKER_ID_NOT_REGISTERED"
        assert await node.refused("DELETE", "/brokers/9", status=404) == "BROKER_ID_NOT_REGISTERED"

    run_with(test)


def test_brokers_are_described() -> None:
    async def test(node: RestNode) -> None:
        broker = await node.get(f"/brokers/{BROKER}")
        port = node.node.bound_ports["PLAINTEXT"]
        assert (broker["kind"], broker["host"], broker["port"]) == ("KafkaBroker", "127.0.0.1", port)
        assert (broker["rack"], broker["is_fenced"]) == ("r1", False)
        assert broker["configs"]["related"].endswith(f"{node.root}/brokers/{BROKER}/configs")
        assert broker["metadata"]["resource_name"] == f"crn:///kafka={node.cluster_id}/broker={BROKER}"
        assert (await node.get("/brokers"))["data"] == [broker]
        (cluster,) = (await (await node.session.get("/v3/clusters")).json())["data"]
        assert cluster["cluster_id"] == node.cluster_id
        assert cluster["controller"]["related"].endswith(f"/brokers/{BROKER}")

    run_with(test, broker_rack="r1")
