"""soundmark-receiver's decoder in Chromium: in an AudioWorklet at both rates of devices, and in files."""

import base64
import io
import wave
from typing import Any, Final

import numpy as np
import pytest
import soundfile
from numpy.random import default_rng
from playwright.async_api import Page
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.sounds import render_token

from bench.degradations import CONDITIONS, Sound
from soundmark.audio.synthesis import PROTOCOLS

pytestmark = pytest.mark.xdist_group("browser")

TOKEN: Final = "brd_Abc-defGHI_01234"
HEAR_FILE: Final = """async (content) => {
  const { hearFile } = await import('/static/receiver/index.js');
  const frames = await hearFile(new Blob([Uint8Array.from(atob(content), (each) => each.charCodeAt(0))]));
  return frames.map((frame) => frame.token);
}"""
# Plays the file twice, in real time, to a stream that takes the place of a microphone.
LISTEN: Final = """async ({ content, rateHz, isInverted }) => {
  const { listen } = await import('/static/receiver/index.js');
  const context = new AudioContext({ sampleRate: rateHz });
  const sound = await context.decodeAudioData(Uint8Array.from(atob(content), (each) => each.charCodeAt(0)).buffer);
  const destination = context.createMediaStreamDestination();
  const heard = [];
  const listening = await listen((frame) => heard.push(frame.token), { stream: destination.stream });
  for (const round of [0, 1]) {
    const source = new AudioBufferSourceNode(context, { buffer: sound });
    if (isInverted) {
      const merger = new ChannelMergerNode(context, { numberOfInputs: 2 });
      source.connect(merger, 0, 0);
      source.connect(new GainNode(context, { gain: -1 })).connect(merger, 0, 1);
      merger.connect(destination);
    } else source.connect(destination);
    const ended = new Promise((resolve) => (source.onended = resolve));
    source.start(context.currentTime + 0.3);
    await ended;
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const usedHz = listening.analyser.context.sampleRate;
  await listening.stop();
  await listening.stop();
  return { heard, usedHz, state: listening.track.readyState };
}"""


@pytest.fixture
async def page(browsing: Browsing, listen_url: str) -> Page:
    """The page under test."""
    page = await browsing.open_page()
    await open_listening_page(page, listen_url)
    return page


@pytest.mark.parametrize(("rate_hz", "is_inverted"), [(44_100, False), (48_000, False), (48_000, True)])
async def test_the_worklet_hears_a_repeated_code_once(page: Page, rate_hz: int, is_inverted: bool) -> None:
    """A balanced source in a stereo socket has inverted channels, which cancel out in their mean."""
    content = base64.b64encode(render_token(TOKEN)).decode()
    found = await page.evaluate(LISTEN, {"content": content, "rateHz": rate_hz, "isInverted": is_inverted})
    assert found["heard"] == [TOKEN]
    assert found["state"] == "ended", "the microphone is switched off"


@pytest.mark.parametrize(
    "condition",
    [
        *("white noise, SNR -8 dB", "resampled to 44.1 kHz, heard at 44.1 kHz"),
        *("resampled to 96 kHz, heard at 96 kHz", "clock error 1000 ppm"),
        *("one dropout of 200 ms", "all at once (see below)"),
    ],
)
async def test_a_file_is_heard_through_what_happens_to_sound(page: Page, condition: str) -> None:
    heard = {}
    for protocol in PROTOCOLS:
        with wave.open(io.BytesIO(render_token(TOKEN, protocol))) as reader:
            samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2") / 32768
        padded: Any = np.concatenate([np.zeros(1111), samples, np.zeros(777)])
        sound = CONDITIONS[condition](Sound(padded), default_rng(protocol))
        heard[protocol] = await page.evaluate(HEAR_FILE, base64.b64encode(store(sound)).decode())
    assert heard == {protocol: [TOKEN] for protocol in PROTOCOLS}


async def test_a_file_is_heard_in_the_mean_of_its_channels_and_beyond_full_scale(page: Page) -> None:
    with wave.open(io.BytesIO(render_token(TOKEN, 5))) as reader:
        code = np.frombuffer(reader.readframes(reader.getnframes()), "<i2") / 32768
    noise = default_rng(1).normal(0, 0.15, len(code))
    hum = 6 * np.sin(2 * np.pi * 300 * np.arange(len(code)) / 48_000)
    sounds = {
        "mean": np.stack([code / 25 + noise, code / 25 - noise], axis=1),
        "inverted": np.stack([code, -code], axis=1),
        "beyond": 8 * code + hum,
    }
    for name, sound in sounds.items():
        file = io.BytesIO()
        soundfile.write(file, sound, 48_000, format="WAV", subtype="FLOAT")
        assert await page.evaluate(HEAR_FILE, base64.b64encode(file.getvalue()).decode()) == [TOKEN], name


def store(sound: Sound) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sound.rate_hz)
        writer.writeframes(np.clip(np.round(sound.samples * 32768), -32768, 32767).astype("<i2").tobytes())
    return file.getvalue()
