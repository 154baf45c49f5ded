"""The problem that is Audio's own; the others are in `soundmark.kit.http.responses.problems`."""

from soundmark.kit.http.responses.problems import Kind, Problem


class AudioBusy(Problem):
    """The queue is full; nothing was rendered."""

    kind, code, title = Kind.UNAVAILABLE, "audio_busy", "Too many renderings are waiting; try again in a moment."
