"""What signing in at an identity provider takes from the process."""

from dataclasses import dataclass
from typing import Final

from soundmark.console.session import Sessions
from soundmark.console.sign_in.attempts import Attempts
from soundmark.console.sign_in.identity_provider import IdentityProvider
from soundmark.console.sign_in.oidc_provider import OidcProvider
from soundmark.console.sign_in.refreshing import TokenRefresher
from soundmark.console.sign_in.renewal import Renewal
from soundmark.kit.crypto.entropy import Entropy
from soundmark.settings import ConsoleSettings

CALLBACK_PATH: Final = "/sign-in/callback"
SIGNED_OUT_PATH: Final = "/sign-in/signed-out"


@dataclass(frozen=True, slots=True)
class SignIn:
    """The identity provider, and what is known about those who sign in there."""

    provider: IdentityProvider
    attempts: Attempts
    renewal: Renewal

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self.renewal.refresher.aclose()
        await self.provider.aclose()


def make_sign_in(settings: ConsoleSettings, sessions: Sessions, entropy: Entropy) -> SignIn | None:
    """Return the parts for the identity provider, or None if none is configured."""
    if settings.oidc_issuer is None or settings.oidc_client_id is None:
        return None
    clock = sessions.clock
    provider = OidcProvider(
        settings.oidc_issuer,
        settings.oidc_client_id,
        settings.oidc_client_secret,
        resource=settings.oidc_resource,
        redirect_uri=f"{settings.console_url}{CALLBACK_PATH}",
        clock=clock,
        extra_ca_file=settings.extra_ca_file,
    )
    renewal = Renewal(TokenRefresher(provider, clock), provider, sessions, clock)
    return SignIn(provider, Attempts(sessions.jar, clock, entropy), renewal)
