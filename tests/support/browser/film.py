"""A film of somebody who uses a page: they type, scroll, and move a pointer to what they press."""

import functools
import io
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw
from playwright.async_api import Locator, Page

_LETTERS_MS: Final = 120
_STEP_MS: Final = 60
_PRESS_MS: Final = 350
# How far a movement has come at each of its steps: it begins and ends slowly.
_STEPS: Final = (0.1, 0.35, 0.65, 0.9, 1.0)
_INSET_PX: Final = 60  # From the left, where a field for files has its button; and low, to leave the text visible.
_ARROW: Final = ((0, 0), (0, 25), (6, 19), (10, 28), (14, 26), (10, 18), (18, 18))
_SCROLL: Final = (
    "(target) => { const from = scrollY; target.scrollIntoView({ block: 'center' }); return [from, scrollY]; }"
)


class Film:
    """Frames of a page, each with its duration."""

    def __init__(self, page: Page) -> None:
        self._page: Final = page
        self._frames: Final[list[Image.Image]] = []
        self.durations_ms: Final[list[int]] = []
        self._picture = Image.new("RGB", (0, 0))
        self._pointer = (560.0, 380.0)

    async def show(self, duration_ms: int, *, is_pressing: bool = False) -> None:
        """Add the page as it is."""
        self._picture = Image.open(io.BytesIO(await self._page.screenshot())).convert("RGB")
        self._add(duration_ms, is_pressing=is_pressing)

    async def press(self, target: Locator) -> None:
        """Move the pointer over the page as it was shown last, and click the target."""
        box = await target.bounding_box()
        assert box is not None, "what is pressed must be on the page"
        x, y = min(_INSET_PX, box["width"] / 2), box["height"] * 0.75
        start = self._pointer
        for way in _STEPS:
            self._pointer = (start[0] + (box["x"] + x - start[0]) * way, start[1] + (box["y"] + y - start[1]) * way)
            self._add(_STEP_MS)
        await target.hover(position={"x": x, "y": y})
        await self.show(_PRESS_MS, is_pressing=True)
        await target.click(position={"x": x, "y": y})

    async def type(self, field: Locator, text: str) -> None:
        """Press a field, and replace what it holds, two letters a frame."""
        await self.press(field)
        await field.select_text()
        for at in range(0, len(text), 2):
            await self._page.keyboard.type(text[at : at + 2])
            await self.show(_LETTERS_MS)

    async def scroll_to(self, target: Locator) -> None:
        """Scroll until the target is in the middle, or the page ends."""
        start, end = await target.evaluate(_SCROLL)
        for way in _STEPS:
            await self._page.evaluate("(y) => scrollTo(0, y)", start + (end - start) * way)
            await self.show(_STEP_MS)

    def save(self, path: Path) -> None:
        """Write a WebP that repeats; without key frames, a frame holds only what changed."""
        first, *rest = self._frames
        first.save(path, save_all=True, append_images=rest, duration=self.durations_ms, quality=70, method=4, kmax=0)

    def _add(self, duration_ms: int, *, is_pressing: bool = False) -> None:
        frame, pointer = self._picture.copy(), _draw_pointer(is_pressing=is_pressing)
        x, y = (round(part) - pointer.width // 2 for part in self._pointer)
        frame.paste(pointer, (x, y), pointer)
        self._frames.append(frame)
        self.durations_ms.append(duration_ms)


@functools.cache
def _draw_pointer(*, is_pressing: bool) -> Image.Image:
    """Return an arrow whose tip is in the middle, in a ring while it presses; four times finer while it is drawn."""
    picture = Image.new("RGBA", (256, 256))
    pen = ImageDraw.Draw(picture)
    if is_pressing:
        pen.ellipse((32, 32, 224, 224), outline="#e0561b", width=16)
    outline = [(128 + 4 * x, 128 + 4 * y) for x, y in _ARROW]
    pen.polygon(outline, fill="black")
    pen.line([*outline, *outline[:2]], fill="white", width=8, joint="curve")
    return picture.resize((64, 64), Image.Resampling.LANCZOS)
