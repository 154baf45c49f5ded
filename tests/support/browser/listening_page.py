"""The console's listening page in a browser."""

from typing import Final

from playwright.async_api import Page, expect

# Ends the track of `microphone_at` as a browser does when the device is gone.
UNPLUG: Final = """const [track] = window.stream.getAudioTracks();
Object.defineProperty(track, 'readyState', { value: 'ended' });
track.dispatchEvent(new Event('ended'));"""


async def open_listening_page(page: Page, url: str) -> None:
    """Open the page and wait until its script has begun."""
    await page.goto(url)
    await expect(page.locator("#listen[data-ready]")).to_be_attached()


def microphone_at(rate_hz: int) -> str:
    """Return a script after which the page's microphone is silent and says that it has this rate."""
    return f"""navigator.mediaDevices.getUserMedia = async () => {{
      window.stream = new AudioContext({{ sampleRate: 16000 }}).createMediaStreamDestination().stream;
      const [track] = window.stream.getAudioTracks();
      track.getSettings = () => ({{ sampleRate: {rate_hz} }});
      return window.stream;
    }}"""
