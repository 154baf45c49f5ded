"""An OpenID Connect provider: the authorization code flow with PKCE.

Authlib writes the requests and judges the claims. The requests go through our own client, with its limits: record 26.
"""

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import structlog
from authlib.common.urls import add_params_to_uri
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7009 import prepare_revoke_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from soundmark.console.sign_in.attempts import Attempt
from soundmark.console.sign_in.id_token import read_identity
from soundmark.console.sign_in.identity_provider import (
    GrantRefused,
    Identity,
    IdentityRefused,
    ProviderUnavailable,
    Tokens,
)
from soundmark.kit.clock import Clock
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.client import OutboundClient, OutboundRequest, OutboundResponse, RequestLost
from soundmark.kit.http.outbound.issuer_keys import IssuerKeys, IssuerUnavailable
from soundmark.kit.http.outbound.signed_tokens import TokenRefused, read_signed_token
from soundmark.kit.http.requests.strict_json import MalformedJson, parse_json
from soundmark.kit.text.validation import is_secure_url

SECOND_FACTOR: Final = "2"  # The `acr` of LoA 2: contract, section 2.
_SCOPE: Final = "openid email"
_TIMEOUT_S: Final = 5.0  # A person waits for it.
_REVOCATION_TIMEOUT_S: Final = 3.0  # A person who signs out waits for it, and for nothing that they see.
_ANSWER_MAX_BYTES: Final = 64 * 1024
_TOKEN_CHARS_MAX: Final = 8 * 1024  # Core refuses larger access tokens: contract, section 2.
_ID_TOKEN_MAX_BYTES: Final = 16 * 1024
# For a provider that does not say how long an access token is valid, although it should (RFC 6749, section 5.1).
_UNKNOWN_LIFETIME_S: Final = 60
_LIFETIME_MAX_S: Final = 24 * 3600

_log: Final = structlog.get_logger()


class OidcProvider:
    """An issuer at which the console is registered as a client, with a secret or, thanks to PKCE, without.

    `resource` names Core's API to an issuer that gives access tokens for one API each (RFC 8707).
    """

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: Secret | None,
        *,
        redirect_uri: str,
        resource: str | None,
        clock: Clock,
        extra_ca_file: Path | None = None,
    ) -> None:
        self.issuer: Final = issuer
        self._client_id: Final = client_id
        self._client_secret: Final = client_secret
        self._redirect_uri: Final = redirect_uri
        self._resource: Final = {} if resource is None else {"resource": resource}
        self._clock: Final = clock
        self._keys: Final = IssuerKeys(issuer, clock, timeout_s=_TIMEOUT_S, extra_ca_file=extra_ca_file)
        self._client: Final = OutboundClient(bytes_max=_ANSWER_MAX_BYTES, extra_ca_file=extra_ca_file)

    async def begin(self, attempt: Attempt, language: str) -> str:
        """Return the URL to which the browser goes to sign in.

        Raises: ProviderUnavailable.
        Source: OpenID Connect Core 1.0, sections 3.1.2.1 and 5.5.1.1.
        """
        metadata = await self._describe()
        stronger = _ask_for_second_factor(metadata) if attempt.needs_second_factor else {}
        url: str = prepare_grant_uri(
            _endpoint(metadata, "authorization_endpoint"),
            self._client_id,
            "code",
            self._redirect_uri,
            _SCOPE,
            attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
            ui_locales=language,
            **self._resource,
            **stronger,
        )
        return url

    async def may_have_answered(self, issuer: str | None) -> bool:
        """Return whether an answer that names this issuer, or none, can be the provider's own.

        Raises: ProviderUnavailable.
        Source: RFC 9207, section 2.4.
        """
        if issuer is not None:
            return issuer == self.issuer
        return (await self._describe()).get("authorization_response_iss_parameter_supported") is not True

    async def finish(self, attempt: Attempt, code: str) -> tuple[Identity, Tokens]:
        """Exchange the code of a finished login for the person and their tokens.

        Raises: ProviderUnavailable; GrantRefused; IdentityRefused.
        """
        answer = await self._request_tokens(
            "authorization_code", redirect_uri=self._redirect_uri, code=code, code_verifier=attempt.verifier
        )
        tokens = self._read_tokens(answer, None)
        id_token = answer.get("id_token")
        if not isinstance(id_token, str):
            raise IdentityRefused("id_token")
        try:
            header, claims = await read_signed_token(self._keys, id_token, bytes_max=_ID_TOKEN_MAX_BYTES)
        except TokenRefused as refused:
            raise IdentityRefused(refused.reason) from None
        except IssuerUnavailable:
            raise ProviderUnavailable("keys") from None
        identity = read_identity(
            header,
            claims,
            issuer=self.issuer,
            client_id=self._client_id,
            nonce=attempt.nonce,
            access_token=tokens.access_token,
            now_s=int(self._clock.unix_s()),
        )
        return identity, tokens

    async def refresh(self, refresh_token: str) -> Tokens:
        """Return new tokens. The refresh token may not be used a second time.

        Raises: ProviderUnavailable; GrantRefused.
        """
        answer = await self._request_tokens("refresh_token", refresh_token=refresh_token)
        return self._read_tokens(answer, refresh_token)

    async def revoke(self, refresh_token: str) -> None:
        """Make a refresh token worthless, if the provider offers that. A failure is in the log and changes nothing.

        Source: RFC 7009, section 2.
        """
        try:
            async with asyncio.timeout(_REVOCATION_TIMEOUT_S):
                metadata = await self._keys.describe()
                if "revocation_endpoint" in metadata:
                    await self._revoke(metadata["revocation_endpoint"], refresh_token)
        except IssuerUnavailable:
            _log.warning("refresh_token_not_revoked", reason="discovery")
        except TimeoutError:
            _log.warning("refresh_token_not_revoked", reason="deadline")
        except RequestLost as lost:
            _log.warning("refresh_token_not_revoked", reason=lost.reason)

    async def end_session_url(self, return_to: str, language: str) -> str | None:
        """Return the URL at which the provider ends its own session, or None if it has no such page.

        It names the client and no person: URLs are in logs and in the browser's history.

        Raises: ProviderUnavailable.
        Source: OpenID Connect RP-Initiated Logout 1.0, section 2.
        """
        metadata = await self._describe()
        if "end_session_endpoint" not in metadata:
            return None
        params = {"client_id": self._client_id, "post_logout_redirect_uri": return_to, "ui_locales": language}
        url: str = add_params_to_uri(_endpoint(metadata, "end_session_endpoint"), list(params.items()))
        return url

    async def aclose(self) -> None:
        """Close the connections."""
        await self._keys.aclose()
        await self._client.aclose()

    async def _describe(self) -> Mapping[str, Any]:
        try:
            return await self._keys.describe()
        except IssuerUnavailable:
            raise _report("discovery") from None

    async def _request_tokens(self, grant_type: str, **params: str) -> Mapping[str, Any]:
        """Return what the token endpoint answers.

        Raises: ProviderUnavailable; GrantRefused.
        Source: RFC 6749, sections 3.2 and 5.
        """
        url = _endpoint(await self._describe(), "token_endpoint")
        headers = {"content-type": "application/x-www-form-urlencoded"}
        body = prepare_token_request(grant_type, **params, **self._resource)
        url, headers, body = self._authenticate().prepare("POST", url, headers, body)
        try:
            response = await self._client.send(
                OutboundRequest("POST", url, headers, body.encode()), timeout_s=_TIMEOUT_S
            )
        except RequestLost as lost:
            raise _report(lost.reason) from None
        answer = _read_object(response)
        if response.status == HTTPStatus.OK:
            return answer
        if response.status < HTTPStatus.INTERNAL_SERVER_ERROR and answer.get("error") == "invalid_grant":
            raise GrantRefused
        # Anything else is no fault of the person: the client may be registered wrongly, or the provider fails.
        raise _report("token_endpoint", status=response.status, error=_error_of(answer))

    async def _revoke(self, url: Any, refresh_token: str) -> None:
        """Raises: RequestLost."""
        if not isinstance(url, str) or not is_secure_url(url):
            _log.warning("refresh_token_not_revoked", reason="revocation_endpoint")
            return
        body, headers = prepare_revoke_token_request(refresh_token, "refresh_token")
        url, headers, body = self._authenticate().prepare("POST", url, headers, body)
        request = OutboundRequest("POST", url, headers, body.encode())
        response = await self._client.send(request, timeout_s=_REVOCATION_TIMEOUT_S)
        # A token that the provider does not know is none that it would accept: it answers 200 then, too.
        if response.status != HTTPStatus.OK:
            _log.warning("refresh_token_not_revoked", reason="revocation_endpoint", status=response.status)

    def _authenticate(self) -> ClientAuth:
        """Return how requests to the provider's endpoints show which client sends them."""
        if self._client_secret is None:
            return ClientAuth(self._client_id, None, "none")
        # Encoded first, as RFC 6749, section 2.3.1, has it and Authlib does not.
        client_id, client_secret = (quote(text, safe="") for text in (self._client_id, self._client_secret.reveal()))
        return ClientAuth(client_id, client_secret, "client_secret_basic")

    def _read_tokens(self, answer: Mapping[str, Any], refresh_token: str | None) -> Tokens:
        """Return the tokens in an answer; a provider that names no new refresh token keeps the old one valid.

        Raises: ProviderUnavailable.
        """
        access_token, refreshed = answer.get("access_token"), answer.get("refresh_token", refresh_token)
        token_type, lifetime_s = answer.get("token_type"), answer.get("expires_in", _UNKNOWN_LIFETIME_S)
        if not _is_token(access_token) or not isinstance(token_type, str) or token_type.lower() != "bearer":
            raise _report("access_token")
        if refreshed is not None and not _is_token(refreshed):
            raise _report("refresh_token")
        if type(lifetime_s) is not int or lifetime_s <= 0:
            raise _report("expires_in")
        expires_at = self._clock.now() + timedelta(seconds=min(lifetime_s, _LIFETIME_MAX_S))
        return Tokens(str(access_token), expires_at, refreshed)


def _ask_for_second_factor(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the parameters that ask for LoA 2.

    An essential claim is a demand, `acr_values` only a wish, and some providers take the second for the first where
    both are there. So only a provider that does not announce the `claims` parameter gets `acr_values`.
    """
    claims = {"id_token": {"acr": {"essential": True, "values": [SECOND_FACTOR]}}}
    params = {"claims": json.dumps(claims, separators=(",", ":"))}
    return params if metadata.get("claims_parameter_supported") is True else {**params, "acr_values": SECOND_FACTOR}


def _endpoint(metadata: Mapping[str, Any], name: str) -> str:
    url = metadata.get(name)
    if not isinstance(url, str) or not is_secure_url(url):
        raise _report(name)
    return url


def _read_object(response: OutboundResponse) -> Mapping[str, Any]:
    try:
        answer = parse_json(response.body)
    except MalformedJson:
        answer = None
    if not isinstance(answer, dict):
        raise _report("malformed_json", status=response.status)
    return answer


def _error_of(answer: Mapping[str, Any]) -> str | None:
    """Return the provider's error code, if it is one that RFC 6749 allows and a log can show."""
    error = answer.get("error")
    return error if isinstance(error, str) and error.isascii() and error.isprintable() and len(error) < 100 else None  # noqa: PLR2004 - longer than any registered code


def _is_token(value: Any) -> bool:
    return (
        isinstance(value, str) and 0 < len(value) <= _TOKEN_CHARS_MAX and value.isascii() and value.isprintable()
    ) and " " not in value


def _report(reason: str, **details: Any) -> ProviderUnavailable:
    _log.warning("identity_provider_unavailable", reason=reason, **details)
    return ProviderUnavailable(reason)
