"""What a listener speaks, by the numbers that registrations and metadata have for it."""

from enum import IntEnum


class SecurityProtocol(IntEnum):
    """Apache Kafka's, by its names."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3
