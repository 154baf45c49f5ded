"""Examples of integrations."""

from dataclasses import replace
from typing import Final

from soundmark.core.domain.audience.integration import DescribedIntegration, IntegrationSecret
from soundmark.core.edge.examples import EXAMPLE_KEY, INTEGRATION, LATER
from soundmark.kit.crypto.secret import Secret
from soundmark.wire.private.integrations import CoreKeyResponse, RetentionResponse

NAME: Final = "Studio measurement"
DESCRIBED: Final = DescribedIntegration(INTEGRATION, NAME)
REVOKED: Final = replace(
    DESCRIBED, integration=INTEGRATION.model_copy(update={"status": "revoked", "revoked_at": LATER})
)
_HMAC_SECRET: Final = Secret("xhm_" + "ZXhhbXBsZS1vZi1hLXNlY3JldC10aGF0LXNpZ25zLWV")
CREATED: Final = IntegrationSecret(DESCRIBED, _HMAC_SECRET)
_ROTATED: Final = replace(DESCRIBED, integration=INTEGRATION.model_copy(update={"secret_rotated_at": LATER}))
ROTATED: Final = IntegrationSecret(_ROTATED, _HMAC_SECRET)
RETENTION: Final = RetentionResponse(
    integration_id=INTEGRATION.id,
    previous_retention_days=90,
    retention_days=30,
    deleted_events=41_203,
    deleted_integrity_days=60,
)
CORE_KEY: Final = CoreKeyResponse(integration_id=INTEGRATION.id, core_key_id=EXAMPLE_KEY.key_id)
