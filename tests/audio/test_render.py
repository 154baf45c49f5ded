"""The renderer and its queue, without HTTP."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from soundmark.audio.render import PROTOCOLS, WAITING_MAX, Protocol, QueueFull, Renderer, RenderQueue

FRAME = "XRC1:brd_aZ09-_bY18-_cX27"


@pytest.fixture
def renderer() -> Iterator[Renderer]:
    """A renderer of its own."""
    made = Renderer()
    yield made
    made.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_rendered_frame_is_heard_again(
    renderer: Renderer, decode: Callable[[bytes], str | None], protocol: Protocol
) -> None:
    assert decode(renderer.render(FRAME, protocol)) == FRAME


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rendering_is_deterministic(renderer: Renderer, protocol: Protocol) -> None:
    assert renderer.render(FRAME, protocol) == renderer.render(FRAME, protocol)


def test_a_malformed_frame_or_audible_protocol_is_refused(renderer: Renderer, subtests: pytest.Subtests) -> None:
    for frame, protocol in [
        ("", 4),
        ("XRC1:", 4),
        (FRAME[:-1], 4),
        (FRAME + "A", 4),
        (FRAME + "\n", 4),
        (FRAME[:-1] + "é", 4),
        (FRAME.lower(), 4),
        ("A" * 141, 4),
        *[(FRAME, protocol) for protocol in (-1, 0, 1, 2, 6, 9, 23)],
    ]:
        with subtests.test(frame=frame, protocol=protocol), pytest.raises(ValueError, match=r"^not an? "):
            renderer.render(frame, protocol)


def test_refused_calls_lose_no_instance(renderer: Renderer, decode: Callable[[bytes], str | None]) -> None:
    """ggwave loses one of a process's four instances with every call that it refuses itself."""
    bad: Protocol = 9  # type: ignore[assignment]  # what the test is about
    for _ in range(5):
        with pytest.raises(ValueError, match="not an ultrasound protocol"):
            renderer.render(FRAME, bad)

    assert decode(renderer.render(FRAME, 4)) == FRAME


def test_closing_gives_the_instance_back() -> None:
    for _ in range(5):
        one = Renderer()
        one.close()
        one.close()
    last = Renderer()
    try:
        assert last.render(FRAME, 5)
    finally:
        last.close()


class BlockedRenderer(Renderer):
    """A renderer that renders nothing until it is released, and records its requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: list[str] = []
        self.started = threading.Event()
        self.may_go_on = threading.Event()

    def render(self, frame: str, protocol: Protocol) -> bytes:
        self.requested.append(f"{frame} {protocol}")
        self.started.set()
        assert self.may_go_on.wait(30)
        return b"RIFF"


async def test_a_full_queue_refuses_until_there_is_room() -> None:
    blocked = BlockedRenderer()
    queue = RenderQueue(blocked)
    waiting = [asyncio.create_task(queue.render(FRAME, 4)) for _ in range(WAITING_MAX)]
    await asyncio.to_thread(blocked.started.wait, 30)

    with pytest.raises(QueueFull):
        await queue.render(FRAME, 5)
    blocked.may_go_on.set()

    assert await asyncio.gather(*waiting) == [b"RIFF"] * WAITING_MAX
    assert await queue.render(FRAME, 5) == b"RIFF"
    await queue.aclose()


async def test_a_caller_who_gave_up_while_waiting_is_not_rendered() -> None:
    blocked = BlockedRenderer()
    queue = RenderQueue(blocked)
    first = asyncio.create_task(queue.render("first", 4))
    await asyncio.to_thread(blocked.started.wait, 30)
    impatient, patient = (asyncio.create_task(queue.render(name, 4)) for name in ("impatient", "patient"))
    queued = asyncio.create_task(asyncio.sleep(0))  # Runs after both have joined the queue.
    await queued

    impatient.cancel()
    await asyncio.wait({impatient})
    blocked.may_go_on.set()

    assert await asyncio.gather(first, patient) == [b"RIFF", b"RIFF"]
    assert blocked.requested == ["first 4", "patient 4"]
    await queue.aclose()
