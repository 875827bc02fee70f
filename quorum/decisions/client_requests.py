"""What clients may ask of a controller: which decision answers each API."""

from typing import Final

from ...protocol.apis import ApiKey
from .acls import create_acls, delete_acls
from .brokers import unregister_broker
from .client_quotas import alter_client_quotas
from .configs import alter_configs, incremental_alter_configs
from .controller_request import ControllerRequest
from .delegation_tokens import create_token, expire_token, renew_token
from .elections import elect_leaders
from .features import update_features
from .partitions import create_partitions
from .reassignments import alter_reassignments
from .scram_credentials import alter_user_scram_credentials
from .topics import create_topics, delete_topics

CREATE_TOPICS: Final = ControllerRequest(ApiKey.CREATE_TOPICS, create_topics, first_strict_version=6)
DELETE_TOPICS: Final = ControllerRequest(ApiKey.DELETE_TOPICS, delete_topics, first_strict_version=5)
CREATE_PARTITIONS: Final = ControllerRequest(ApiKey.CREATE_PARTITIONS, create_partitions, first_strict_version=3)
ELECT_LEADERS: Final = ControllerRequest(ApiKey.ELECT_LEADERS, elect_leaders)
ALTER_PARTITION_REASSIGNMENTS: Final = ControllerRequest(ApiKey.ALTER_PARTITION_REASSIGNMENTS, alter_reassignments)
ALTER_CONFIGS: Final = ControllerRequest(ApiKey.ALTER_CONFIGS, alter_configs)
INCREMENTAL_ALTER_CONFIGS: Final = ControllerRequest(ApiKey.INCREMENTAL_ALTER_CONFIGS, incremental_alter_configs)
ALTER_CLIENT_QUOTAS: Final = ControllerRequest(ApiKey.ALTER_CLIENT_QUOTAS, alter_client_quotas)
UPDATE_FEATURES: Final = ControllerRequest(ApiKey.UPDATE_FEATURES, update_features)
UNREGISTER_BROKER: Final = ControllerRequest(ApiKey.UNREGISTER_BROKER, unregister_broker)
CREATE_ACLS: Final = ControllerRequest(ApiKey.CREATE_ACLS, create_acls)
DELETE_ACLS: Final = ControllerRequest(ApiKey.DELETE_ACLS, delete_acls)
ALTER_USER_SCRAM_CREDENTIALS: Final = ControllerRequest(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, alter_user_scram_credentials
)
CREATE_TOKEN: Final = ControllerRequest(ApiKey.CREATE_DELEGATION_TOKEN, create_token)
RENEW_TOKEN: Final = ControllerRequest(ApiKey.RENEW_DELEGATION_TOKEN, renew_token)
EXPIRE_TOKEN: Final = ControllerRequest(ApiKey.EXPIRE_DELEGATION_TOKEN, expire_token)
