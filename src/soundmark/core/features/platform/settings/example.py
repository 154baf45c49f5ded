"""The example of a platform with a mail server, and defaults for everything else."""

from typing import Final

from soundmark.core.domain.platform.settings import EffectiveSetting, SecretStatus
from soundmark.core.edge.examples import ISSUED_AT
from soundmark.core.live.platform_settings import PlatformOverview
from soundmark.settings.registry import CONFIGURATION, CREDENTIALS, PlatformFallbacks

MAIL_HOST: Final = EffectiveSetting("mail.example.org", "database", ISSUED_AT)
PLATFORM: Final = PlatformOverview(
    secrets={
        **dict.fromkeys(CREDENTIALS, SecretStatus(is_configured=False, updated_at=None)),
        **dict.fromkeys(("smtp_username", "smtp_password"), SecretStatus(is_configured=True, updated_at=ISSUED_AT)),
    },
    configuration={
        **{name: EffectiveSetting(getattr(PlatformFallbacks(), name), "default", None) for name in CONFIGURATION},
        "smtp_host": MAIL_HOST,
        "smtp_from_email": EffectiveSetting("codes@example.org", "environment", None),
    },
)
