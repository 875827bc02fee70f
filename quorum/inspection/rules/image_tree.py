"""An image as a tree of names, as Apache Kafka's metadata shell has it.

    /image/provenance
    /image/features/finalized_<feature>
    /image/cluster/brokers/<id>
    /image/cluster/controllers/<id>
    /image/topics/byName/<topic>/{name,id,<partition>}
    /image/topics/byId/<topic id>/…
    /image/configs/<TYPE>:<name>/<key>         without ":<name>" for the defaults of all brokers
    /image/producerIds/nextProducerId
    /image/acls/byId/<id>
    /image/clientQuotas/<entity>/<key>
    /image/scram/<MECHANISM>/<user>
    /image/delegationToken/<token id>
    /image/clusterId                           Kafka has it on every disk instead
    /local                                     what was read, and by which software

Values are Kafka's texts, secrets hidden as Kafka hides them. A folder makes its children when it is asked for them.
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from ....protocol.security_protocols import SecurityProtocol
from ...configs.effective import is_sensitive
from ...decisions.answers import base64_id
from ...metadata.image import (
    BrokerRegistration,
    ConfigResource,
    ConfigResourceType,
    ControllerRegistration,
    MetadataImage,
    PartitionRegistration,
    TopicImage,
)
from ...metadata.records import Endpoint, SupportedFeature
from . import security_tree
from .tree import Folder, Leaf, Node, folder

_RECOVERY_STATES: Final = ("RECOVERED", "RECOVERING")


def image_tree(image: MetadataImage, local: Mapping[str, str]) -> Folder:
    """Return the root. `local` describes the reader itself."""
    return folder(
        {
            "image": _image(image),
            "local": folder({name: Leaf(text) for name, text in local.items()}),
        }
    )


def _image(image: MetadataImage) -> Folder:
    brokers = folder({str(broker_id): Leaf(_broker(image.brokers[broker_id])) for broker_id in sorted(image.brokers)})
    controllers = folder(
        {str(node_id): Leaf(_controller(image.controllers[node_id])) for node_id in sorted(image.controllers)}
    )
    children: dict[str, Node] = {
        "acls": folder({"byId": security_tree.acls(image)}),
        "clientQuotas": security_tree.client_quotas(image),
        "cluster": folder({"brokers": brokers, "controllers": controllers}),
        "configs": _configs(image),
        "delegationToken": security_tree.delegation_tokens(image),
        "features": folder({f"finalized_{name}": Leaf(str(level)) for name, level in sorted(image.features.items())}),
        "producerIds": folder({"nextProducerId": Leaf(str(image.next_producer_id))}),
        "provenance": Leaf(_provenance(image)),
        "scram": security_tree.scram_credentials(image),
        "topics": folder(
            {
                "byId": Folder(
                    lambda: sorted(base64_id(topic_id) for topic_id in image.topics.by_id),
                    lambda name: _topic_or_none(image.topics.by_id.get(_uuid(name))),
                ),
                "byName": Folder(
                    lambda: sorted(image.topics.by_name), lambda name: _topic_or_none(image.topics.by_name.get(name))
                ),
            }
        ),
    }
    if image.cluster_id is not None:
        children["clusterId"] = Leaf(image.cluster_id)
    return folder(dict(sorted(children.items())))


def _topic_or_none(topic: TopicImage | None) -> Folder | None:
    if topic is None:
        return None

    def child(name: str) -> Node | None:
        if name == "name":
            return Leaf(topic.name)
        if name == "id":
            return Leaf(base64_id(topic.topic_id))
        if name.isdecimal() and str(int(name)) == name and int(name) < len(topic.partitions):
            return Leaf(_partition(topic.partitions[int(name)]))
        return None

    return Folder(lambda: (*map(str, range(len(topic.partitions))), "id", "name"), child)


def _configs(image: MetadataImage) -> Folder:
    children = {
        _resource_name(resource): folder(
            {name: Leaf(_config_value(resource, name, value)) for name, value in sorted(values.items())}
        )
        for resource, values in image.configs.by_resource.items()
    }
    return folder(dict(sorted(children.items())))


def _resource_name(resource: ConfigResource) -> str:
    kind = ConfigResourceType(resource.type).name if resource.type in set(ConfigResourceType) else str(resource.type)
    return f"{kind}:{resource.name}" if resource.name else kind


def _config_value(resource: ConfigResource, name: str, value: str) -> str:
    if resource.type == ConfigResourceType.BROKER and is_sensitive(name):
        return "[redacted]"
    return value


def _provenance(image: MetadataImage) -> str:
    time = datetime.fromtimestamp(image.timestamp_ms // 1000, UTC).replace(microsecond=image.timestamp_ms % 1000 * 1000)
    text = time.isoformat(timespec="milliseconds").replace("+00:00", "Z[UTC]")
    return f"offset {image.offset}, epoch {image.epoch}, time {text}"


def _broker(broker: BrokerRegistration) -> str:
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, incarnationId={base64_id(broker.incarnation_id)}, "
        f"listeners=[{_endpoints(broker.endpoints)}], supportedFeatures={{{_features(broker.features)}}}, "
        f"rack={_optional(broker.rack)}, fenced={_boolean(broker.is_fenced)}, "
        f"inControlledShutdown={_boolean(broker.in_controlled_shutdown)}, directories={_ids(broker.directories)})"
    )


def _controller(controller: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={controller.id}, incarnationId={base64_id(controller.incarnation_id)}, "
        f"listeners=[{_endpoints(controller.endpoints)}], supportedFeatures={{{_features(controller.features)}}})"
    )


def _endpoints(endpoints: Iterable[Endpoint]) -> str:
    return ", ".join(
        f"Endpoint(listenerName='{endpoint.name}', "
        f"securityProtocol={SecurityProtocol(endpoint.security_protocol).name}, "
        f"host='{endpoint.host}', port={endpoint.port})"
        for endpoint in sorted(endpoints, key=lambda endpoint: endpoint.name)
    )


def _features(features: Iterable[SupportedFeature]) -> str:
    return ", ".join(
        f"{feature.name}: {_range(feature.min_supported_version, feature.max_supported_version)}"
        for feature in sorted(features, key=lambda feature: feature.name)
    )


def _partition(partition: PartitionRegistration) -> str:
    return (
        f"PartitionRegistration(replicas={_list(partition.replicas)}, directories={_ids(partition.directories)}, "
        f"isr={_list(partition.isr)}, removingReplicas={_list(partition.removing_replicas)}, "
        f"addingReplicas={_list(partition.adding_replicas)}, elr={_list(partition.elr)}, "
        f"lastKnownElr={_list(partition.last_known_elr)}, leader={partition.leader}, "
        f"leaderRecoveryState={_RECOVERY_STATES[partition.leader_recovery_state]}, "
        f"leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def _list(values: Iterable[object]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _ids(values: Iterable[UUID]) -> str:
    return _list(map(base64_id, values))


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _optional(text: str | None) -> str:
    return "Optional.empty" if text is None else f"Optional[{text}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _uuid(text: str) -> UUID:
    """The id of a text as Kafka prints it; of anything else one that no topic has."""
    try:
        return UUID(bytes=urlsafe_b64decode(text + "=="))
    except ValueError:
        return UUID(int=0)
