"""The controller's decisions: pure functions from (image, request, context) to records and a response.

Kafka: `ReplicationControlManager`.
"""
