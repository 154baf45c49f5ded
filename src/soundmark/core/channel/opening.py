"""Opening channels to the private components from the settings of a process."""

from pathlib import Path
from typing import Protocol

from soundmark.core.channel.audience import AudienceChannel
from soundmark.core.channel.audio import AudioChannel
from soundmark.core.problems import AudienceUnavailable, AudioUnavailable
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateComponent


class CallSettings(Protocol):
    """The settings of every private call."""

    @property
    def private_timeout_s(self) -> float: ...

    @property
    def private_response_bytes_max(self) -> int: ...

    @property
    def extra_ca_file(self) -> Path | None: ...


class AudienceCallSettings(CallSettings, Protocol):
    """The settings of calls to Audience. The first of the credentials is sent."""

    @property
    def audience_url(self) -> str: ...

    @property
    def audience_credential(self) -> tuple[Secret, ...]: ...


class AudioCallSettings(CallSettings, Protocol):
    """The settings of calls to Audio. The first of the credentials is sent."""

    @property
    def audio_url(self) -> str: ...

    @property
    def audio_credential(self) -> tuple[Secret, ...]: ...


def open_audience_channel(settings: AudienceCallSettings, *, caller: str) -> AudienceChannel:
    """Return a channel to Audience; `caller` names this process in Audience's log."""
    credential = settings.audience_credential[0]
    component = PrivateComponent("audience", settings.audience_url, credential, AudienceUnavailable)
    return AudienceChannel(_open(settings, component, caller))


def open_audio_channel(settings: AudioCallSettings, *, caller: str) -> AudioChannel:
    """Return a channel to Audio; `caller` names this process in Audio's log."""
    component = PrivateComponent("audio", settings.audio_url, settings.audio_credential[0], AudioUnavailable)
    return AudioChannel(_open(settings, component, caller))


def _open(settings: CallSettings, component: PrivateComponent, caller: str) -> PrivateChannel:
    return PrivateChannel(
        component,
        caller=caller,
        timeout_s=settings.private_timeout_s,
        bytes_max=settings.private_response_bytes_max,
        extra_ca_file=settings.extra_ca_file,
    )
