"""Platform settings, and release readiness."""

from soundmark_sdk.client._async.group import AsyncGroup
from soundmark_sdk.client.calls import make_call, make_get, quote_id
from soundmark_sdk.client.records import PlatformSettings, ReleaseReadiness, SecretStatus, Setting


class AsyncPlatform(AsyncGroup):
    """Platform settings and release readiness, for administrators of the platform."""

    async def settings(self) -> PlatformSettings:
        """Return every setting and its source, and for each credential only whether it is set."""
        return await self._sender.call(PlatformSettings, make_get("/v1/platform/settings"))

    async def put_secret(self, name: str, value: str) -> SecretStatus:
        """Set a credential, and replace the previous one."""
        path = f"/v1/platform/settings/secrets/{quote_id(name)}"
        return await self._sender.call(SecretStatus, make_call("PUT", path, {"value": value}, is_repeatable=True))

    async def put_configuration(self, name: str, value: str | float | bool | None) -> Setting:
        """Override a setting; None removes the override."""
        path = f"/v1/platform/settings/configuration/{quote_id(name)}"
        return await self._sender.call(Setting, make_call("PUT", path, {"value": value}, is_repeatable=True))

    async def release_readiness(self) -> ReleaseReadiness:
        """Return the release status of the receivers' SDK."""
        return await self._sender.call(ReleaseReadiness, make_get("/v1/platform/release-readiness"))
