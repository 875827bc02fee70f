"""Topics, requests and connections."""

from __future__ import annotations

from typing import Final

from .metric import attribute, attribute_count, own, percent, rate, times, value

TOPICS: Final = "kafka.server:type=BrokerTopicMetrics,name="
REQUESTS: Final = "kafka.network:type=RequestMetrics,name="
SOCKETS: Final = "kafka.server:type=socket-server-metrics"
PROCESSOR: Final = "0"
"""There is one event loop."""

# Of topics. Without a label: of all topics together.
MESSAGES_IN: Final = rate(f"{TOPICS}MessagesInPerSec", "Records appended here as the leader.", "topic")
BYTES_IN: Final = rate(f"{TOPICS}BytesInPerSec", "Bytes appended here as the leader.", "topic")
BYTES_OUT: Final = rate(f"{TOPICS}BytesOutPerSec", "Bytes of records sent to consumers.", "topic")
BYTES_REJECTED: Final = rate(f"{TOPICS}BytesRejectedPerSec", "Bytes of batches that are too large.", "topic")
PRODUCES: Final = rate(f"{TOPICS}TotalProduceRequestsPerSec", "Batches to append, refused ones too.", "topic")
FETCHES: Final = rate(f"{TOPICS}TotalFetchRequestsPerSec", "Partitions read for fetch requests.", "topic")
FAILED_PRODUCES: Final = rate(
    f"{TOPICS}FailedProduceRequestsPerSec", "Batches that the disk or a corrupt log refused.", "topic"
)
FAILED_FETCHES: Final = rate(
    f"{TOPICS}FailedFetchRequestsPerSec", "Reads that the disk or a corrupt log refused.", "topic"
)
REPLICATION_BYTES_IN: Final = rate(f"{TOPICS}ReplicationBytesInPerSec", "Bytes fetched from leaders.")
REPLICATION_BYTES_OUT: Final = rate(f"{TOPICS}ReplicationBytesOutPerSec", "Bytes of records sent to followers.")

# Of requests.
REQUEST_COUNT: Final = rate(f"{REQUESTS}RequestsPerSec", "Requests that have begun.", "request", "version")
REQUEST_ERRORS: Final = rate(f"{REQUESTS}ErrorsPerSec", "Errors in responses; NONE is not counted.", "request", "error")
TOTAL_TIME: Final = times(f"{REQUESTS}TotalTimeMs", "From the arrival of a request to its response.", "request")
QUEUE_TIME: Final = times(
    f"{REQUESTS}RequestQueueTimeMs", "From the arrival of a request to the start of its handler.", "request"
)
LOCAL_TIME: Final = times(f"{REQUESTS}LocalTimeMs", "In the handler, which nothing interrupts.", "request")
REMOTE_TIME: Final = times(
    f"{REQUESTS}RemoteTimeMs", "Waiting for followers, records, a disk or another node.", "request"
)
SEND_TIME: Final = times(f"{REQUESTS}ResponseSendTimeMs", "From the response to its turn on the connection.", "request")

# Of connections.
CONNECTION_COUNT: Final = attribute(
    SOCKETS, "connection-count", "Connections that are open.", "listener", "networkProcessor"
)
CONNECTIONS_OPENED: Final = attribute_count(
    SOCKETS, "connection-creation-total", "Connections accepted.", "listener", "networkProcessor"
)
CONNECTIONS_CLOSED: Final = attribute_count(
    SOCKETS, "connection-close-total", "Connections closed, by either side.", "listener", "networkProcessor"
)
AUTHENTICATIONS_SUCCESSFUL: Final = attribute_count(
    SOCKETS, "successful-authentication-total", "Successful authentications by SASL.", "listener", "networkProcessor"
)
AUTHENTICATIONS_FAILED: Final = attribute_count(
    SOCKETS, "failed-authentication-total", "Failed authentications by SASL.", "listener", "networkProcessor"
)
REAUTHENTICATIONS_SUCCESSFUL: Final = attribute_count(
    SOCKETS,
    "successful-reauthentication-total",
    "Sessions renewed (KIP-368).",
    "listener",
    "networkProcessor",
)
REAUTHENTICATIONS_FAILED: Final = attribute_count(
    SOCKETS, "failed-reauthentication-total", "Sessions whose renewal failed.", "listener", "networkProcessor"
)
CONNECTIONS_BY_SOFTWARE: Final = attribute(
    SOCKETS,
    "connections",
    "Connections that are open, by the client software of ApiVersions (KIP-511).",
    "clientSoftwareName",
    "clientSoftwareVersion",
    "listener",
    "networkProcessor",
)
EXPIRED_CONNECTIONS: Final = value(
    "kafka.network:type=SocketServer,name=ExpiredConnectionsKilledCount",
    "Connections closed because they went on after the end of their session (KIP-368).",
)
CONNECTIONS_IDLE_CLOSED: Final = own(
    "counter", "penstock_connections_idle_closed_total", "Connections closed because nothing came for too long."
)
MEMORY_USED: Final = value(
    "kafka.network:type=SocketServer,name=MemoryPoolUsed", "Bytes that unfinished requests hold."
)
MEMORY_AVAILABLE: Final = value(
    "kafka.network:type=SocketServer,name=MemoryPoolAvailable", "Bytes of queued.max.request.bytes that are free."
)
PROCESSOR_IDLE: Final = value(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent",
    "Part of the last minute in which the event loop waited: network and handlers share it.",
)
PROCESSOR_IDLE_EACH: Final = value(
    "kafka.network:type=Processor,name=IdlePercent", "The same: there is one event loop.", "networkProcessor"
)
PROCESSOR_IDLE_PERCENT: Final = percent(
    "kafka.network:type=SocketServer,name=NetworkProcessorAvgIdlePercent", "The same, as Strimzi's rules name it."
)
HANDLER_IDLE_PERCENT: Final = percent(
    "kafka.server:type=KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent",
    "Part of the last minute in which the event loop waited: network and handlers share it.",
)
CONNECTIONS_REFUSED: Final = own(
    "counter",
    "penstock_connections_refused_total",
    "Connections above max.connections, max.connections.per.ip or the rate of their address.",
)
CONNECTIONS_THROTTLED: Final = own(
    "counter",
    "penstock_connections_throttled_total",
    "New connections above the rate of the node, their listener or their address, which were delayed or closed.",
)
CONNECTIONS_FAILED: Final = own(
    "counter", "penstock_connections_failed_total", "Connections closed because of what the peer sent."
)
NETWORK_BYTES_IN: Final = own("counter", "penstock_network_bytes_in_total", "Bytes received from clients and nodes.")
NETWORK_BYTES_OUT: Final = own("counter", "penstock_network_bytes_out_total", "Bytes sent to clients and nodes.")
UNEXPECTED_ERRORS: Final = own(
    "counter", "penstock_unexpected_errors_total", "Exceptions of handlers that are logged with a traceback: defects."
)
