# Generated from `../_async/platform.py` by `make_blocking.py`: change that file, then run this program.
"""Platform settings, and release readiness."""

from soundmark_sdk.client._sync.group import Group
from soundmark_sdk.client.calls import make_call, make_get, quote_id
from soundmark_sdk.client.records import PlatformSettings, ReleaseReadiness, SecretStatus, Setting


class Platform(Group):
    """Platform settings and release readiness, for administrators of the platform."""

    def settings(self) -> PlatformSettings:
        """Return every setting and its source, and for each credential only whether it is set."""
        return self._sender.call(PlatformSettings, make_get("/v1/platform/settings"))

    def put_secret(self, name: str, value: str) -> SecretStatus:
        """Set a credential, and replace the previous one."""
        path = f"/v1/platform/settings/secrets/{quote_id(name)}"
        return self._sender.call(SecretStatus, make_call("PUT", path, {"value": value}, is_repeatable=True))

    def put_configuration(self, name: str, value: str | float | bool | None) -> Setting:
        """Override a setting; None removes the override."""
        path = f"/v1/platform/settings/configuration/{quote_id(name)}"
        return self._sender.call(Setting, make_call("PUT", path, {"value": value}, is_repeatable=True))

    def release_readiness(self) -> ReleaseReadiness:
        """Return the release status of the receivers' SDK."""
        return self._sender.call(ReleaseReadiness, make_get("/v1/platform/release-readiness"))
