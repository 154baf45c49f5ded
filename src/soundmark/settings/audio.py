"""Settings of Audio."""

from soundmark.settings.fields import Credentials
from soundmark.settings.process import ServedSettings


class AudioSettings(ServedSettings):
    """Settings of `soundmark serve audio`, whose only secret is its credential."""

    audio_credential: Credentials
