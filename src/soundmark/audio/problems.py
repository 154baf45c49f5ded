"""What the caller of this component is told went wrong, beside what every component can have."""

from soundmark.kit.problems import Kind, Problem


class AudioBusy(Problem):
    """As many callers wait for a rendering as may wait; nothing was rendered."""

    kind, code, title = Kind.UNAVAILABLE, "audio_busy", "Too many renderings are waiting; try again in a moment."
