"""Recordings that a person chooses or drops."""

import base64
import io
import re
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import soundfile
from playwright.async_api import Page, expect
from support.browser.chromium import Browsing
from support.browser.listening_page import open_listening_page
from support.codes.signed_answers import GENUINE, VECTORS
from support.codes.sounds import render_token

pytestmark = pytest.mark.xdist_group("browser")

TOKEN: Final = GENUINE["token"]
OTHER_TOKEN: Final = "brd_zyxwvutsrqponmlk"
DROP: Final = """async ({ name, content }) => {
  const bytes = Uint8Array.from(atob(content), (each) => each.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const drop = document.getElementById('drop');
  for (const type of ['dragenter', 'dragover', 'drop']) {
    drop.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
  }
}"""


def write_wav(file: Path, duration_s: float, channels: int = 1, sound: bytes = b"") -> Path:
    with wave.open(str(file), "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(48_000)
        writer.writeframes(sound or bytes(round(duration_s * 48_000) * 2 * channels))
    return file


async def open_page(browsing: Browsing, url: str, **options: Any) -> Page:
    page = await browsing.open_page(**options)
    await page.clock.set_fixed_time(GENUINE["now"])
    await open_listening_page(page, url)
    return page


async def test_a_dropped_file_is_heard(browsing: Browsing, listen_url: str, stand_in: Any) -> None:
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_page(browsing, listen_url)
    dropped = {"name": "code.wav", "content": base64.b64encode(render_token(TOKEN)).decode()}
    await page.evaluate(DROP, dropped)
    heard = page.locator("#heard article")
    await expect(heard).to_have_attribute("data-outcome", "verified")
    await expect(page.locator("#nothing")).to_be_hidden()
    await page.evaluate(DROP, dropped)
    await expect(page.locator("#file-progress")).to_be_empty()
    await expect(heard).to_have_count(1)
    assert stand_in.resolved == [TOKEN], "what is on the page is not resolved again"


async def test_a_code_in_the_right_channel_alone_and_two_codes_in_one_file_are_heard(
    browsing: Browsing, listen_url: str, stand_in: Any, tmp_path: Path
) -> None:
    browsing.tolerate("status of 404")
    stand_in.statuses |= {TOKEN: 404, OTHER_TOKEN: 404}
    sound = render_token(TOKEN)[44:] + render_token(OTHER_TOKEN, 5)[44:]
    stereo = b"".join(b"\0\0" + sound[at : at + 2] for at in range(0, len(sound), 2))
    page = await open_page(browsing, listen_url)
    await page.locator("#file").set_input_files(write_wav(tmp_path / "two.wav", 0, 2, stereo))
    await expect(page.locator("#heard article[data-outcome=codeUnavailable]")).to_have_count(2)
    assert sorted(stand_in.resolved) == sorted([TOKEN, OTHER_TOKEN])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: write_wav(folder / "silence.wav", 2), "There is no Code in this file. It is silent."),
        (lambda folder: write_wav(folder / "long.wav", 601), "longer than ten minutes"),
        (lambda folder: write_text(folder / "notes.wav"), "cannot play this file"),
        (lambda folder: write_text(folder / "empty.wav", ""), "cannot play this file"),
    ],
)
async def test_a_file_without_a_code_is_said_to_have_none(
    browsing: Browsing, listen_url: str, tmp_path: Path, make: Callable[[Path], Path], words: str
) -> None:
    page = await open_page(browsing, listen_url)
    await page.locator("#file").set_input_files(make(tmp_path))
    await expect(page.locator("#file-progress")).to_contain_text(words, timeout=30_000)
    await expect(page.locator("#heard article")).to_have_count(0)


def make_sound(highest_hz: float, *, level: float = 0.1, duration_s: float = 2) -> bytes:
    """Return noise without anything above a frequency, as the samples of a file."""
    noise = np.random.default_rng(17).standard_normal(round(duration_s * 48_000))
    spectrum = np.fft.rfft(noise)
    spectrum[np.fft.rfftfreq(len(noise), 1 / 48_000) > highest_hz] = 0
    return (np.clip(np.fft.irfft(spectrum, len(noise)) * level, -1, 1) * 32_767).astype("<i2").tobytes()


async def test_the_page_says_what_it_found_in_a_file_without_a_code(
    browsing: Browsing, listen_url: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    page = await open_page(browsing, listen_url)
    sounds = {
        "white noise": (make_sound(24_000), r"no Code in this file\. The band of Codes.+ holds sound \(-\d\d dB\)"),
        "FM": (make_sound(15_000), r"It is cut off below the band of Codes"),
        "speech": (make_sound(300), r"The band of Codes, from 15 to 19\.5 kHz, is empty"),
        "short": (make_sound(24_000, duration_s=0.5), r"It lasts 0\.5 s; a whole Code lasts 1\.5.+ holds sound"),
        "quiet": (make_sound(24_000, level=1e-4), r"It is very quiet: its loudest sample is at -\d\d dB"),
    }
    for name, (sound, words) in sounds.items():
        with subtests.test(name=name):
            await page.locator("#file").set_input_files(write_wav(tmp_path / f"{name}.wav", 0, 1, sound))
            await expect(page.locator("#file-progress")).to_have_text(re.compile(words), timeout=30_000)
            await expect(page.locator("#file-name")).to_have_text(f"{name}.wav")


async def test_samples_that_are_no_numbers_do_not_make_a_file_silent_or_louder_than_its_sound(
    browsing: Browsing, listen_url: str, tmp_path: Path
) -> None:
    page = await open_page(browsing, listen_url)
    for spoilt in (np.nan, np.inf, 3e38):
        sound = np.frombuffer(make_sound(24_000), "<i2") / 32_768
        sound[500:20_000:1000] = spoilt
        soundfile.write(tmp_path / f"{spoilt}.wav", sound, 48_000, subtype="FLOAT")
        await page.locator("#file").set_input_files(tmp_path / f"{spoilt}.wav")
        words = re.compile(r"holds sound \(-\d\d dB\)")
        await expect(page.locator("#file-progress")).to_have_text(words, timeout=30_000)


async def test_only_what_becomes_of_the_last_of_two_files_is_said(
    browsing: Browsing, listen_url: str, tmp_path: Path
) -> None:
    """The name above the sentence is that of the last file, and the first one may take longer."""
    page = await open_page(browsing, listen_url)
    await page.evaluate(
        """() => {
          const { decodeAudioData } = OfflineAudioContext.prototype;
          const held = Promise.withResolvers();
          Object.assign(window, { begun: Promise.withResolvers(), ended: Promise.withResolvers() });
          let [begunCount, endedCount] = [0, 0];
          OfflineAudioContext.prototype.decodeAudioData = async function (content) {
            begunCount += 1;
            window.begun.resolve();
            if (begunCount === 1) await held.promise;
            const sound = await decodeAudioData.call(this, content);
            endedCount += 1;
            if (endedCount === 4) setTimeout(window.ended.resolve);
            return sound;
          };
          window.release = async () => {
            held.resolve();
            await window.ended.promise;
          };
        }"""
    )
    progress, choose = page.locator("#file-progress"), page.locator("#file").set_input_files
    await choose(write_wav(tmp_path / "silence.wav", 1))
    await page.evaluate("window.begun.promise")
    await choose(write_wav(tmp_path / "noise.wav", 0, 1, make_sound(24_000)))
    await expect(progress).to_contain_text("holds sound", timeout=30_000)
    await page.evaluate("window.release()")
    await expect(page.locator("#file-name")).to_have_text("noise.wav")
    await expect(progress).to_contain_text("holds sound")


@pytest.mark.parametrize(("field", "words"), [("file", "cannot play this file"), ("pack", "genuine")])
async def test_the_same_file_can_be_chosen_again(
    browsing: Browsing, listen_url: str, tmp_path: Path, field: str, words: str
) -> None:
    """A browser reports a choice only if it differs from the last one, so opening the chooser forgets that one."""
    page = await open_page(browsing, listen_url)
    chosen = page.locator(f"#{field}")
    notes = write_text(tmp_path / "notes.wav")
    for _ in range(2):
        async with page.expect_file_chooser() as chooser:
            await chosen.click()
        await expect(chosen).to_have_value("")
        await (await chooser.value).set_files(notes)
        await expect(page.locator(f"#{field}-progress")).to_contain_text(words)


async def test_a_file_that_fails_stands_above_what_was_heard_before(
    browsing: Browsing, listen_url: str, stand_in: Any, tmp_path: Path
) -> None:
    stand_in.keys, stand_in.answers[TOKEN] = VECTORS["keys"], GENUINE["answer"]
    page = await open_page(browsing, listen_url)
    heard, before = page.locator("#heard article"), page.locator("#before")
    code = tmp_path / "tonight \u202e.wav"
    code.write_bytes(render_token(TOKEN))
    await page.locator("#file").set_input_files(code)
    await expect(heard).to_have_attribute("data-outcome", "verified")
    await expect(heard.locator(".source")).to_have_text("In the file tonight [U+202E].wav")
    await expect(before).to_be_hidden()

    await page.locator("#file").set_input_files(write_text(tmp_path / "notes.wav"))
    await expect(page.locator("#file-progress")).to_contain_text("cannot play this file")
    await expect(heard).to_have_count(0)
    await expect(before.locator("article")).to_be_hidden()
    await page.locator("#file").set_input_files(code)

    await expect(heard).to_have_count(1)
    await expect(before).to_be_hidden()
    assert stand_in.resolved == [TOKEN]


RECORD: Final = """async (content) => {
  const context = new AudioContext({ sampleRate: 48000 });
  const sound = await context.decodeAudioData(Uint8Array.from(atob(content), (each) => each.charCodeAt(0)).buffer);
  const destination = context.createMediaStreamDestination();
  const source = new AudioBufferSourceNode(context, { buffer: sound });
  source.connect(destination);
  const recorder = new MediaRecorder(destination.stream, { audioBitsPerSecond: 256000 });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const stopped = new Promise((resolve) => (recorder.onstop = resolve));
  recorder.start();
  source.start(context.currentTime + 0.3);
  await new Promise((resolve) => (source.onended = resolve));
  recorder.stop();
  await stopped;
  await context.close();
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(Array.from(bytes, (each) => String.fromCharCode(each)).join(''));
}"""


async def test_a_recording_of_the_browser_itself_and_streams_of_unknown_length_are_heard(
    browsing: Browsing, listen_url: str, stand_in: Any
) -> None:
    """MediaRecorder writes WebM without a duration, and a FLAC stream says that it has no samples."""
    browsing.tolerate("status of 404")
    stand_in.statuses |= {TOKEN: 404, OTHER_TOKEN: 404}
    page = await open_page(browsing, listen_url)
    recorded = await page.evaluate(RECORD, base64.b64encode(render_token(TOKEN)).decode())
    await page.evaluate(DROP, {"name": "memo.webm", "content": recorded})
    await expect(page.locator("#heard article[data-outcome=codeUnavailable]")).to_have_count(1)
    streamed = base64.b64encode(stream_flac(render_token(OTHER_TOKEN))).decode()
    await page.evaluate(DROP, {"name": "stream.flac", "content": streamed})
    await expect(page.locator("#heard article[data-outcome=codeUnavailable]")).to_have_count(1)
    await expect(page.locator("#before article[data-outcome=codeUnavailable]")).to_have_count(1)
    assert stand_in.resolved == [TOKEN, OTHER_TOKEN]


async def test_a_stream_is_too_long_only_if_it_is(browsing: Browsing, listen_url: str, tmp_path: Path) -> None:
    page = await open_page(browsing, listen_url)
    choose = page.locator("#file").set_input_files
    (tmp_path / "long.flac").write_bytes(stream_flac(write_wav(tmp_path / "long.wav", 601).read_bytes()))
    (tmp_path / "short.flac").write_bytes(stream_flac(write_wav(tmp_path / "short.wav", 2).read_bytes()))
    await choose(tmp_path / "long.flac")
    await expect(page.locator("#file-progress")).to_contain_text("longer than ten minutes", timeout=30_000)
    await choose(tmp_path / "short.flac")
    await expect(page.locator("#file-progress")).to_contain_text("There is no Code in this file")


@pytest.mark.parametrize(("size", "words"), [(1, "no Code in this file"), (50_000_001, "cannot tell how long")])
async def test_a_length_that_the_browser_does_not_find_matters_only_for_a_large_file(
    browsing: Browsing, listen_url: str, tmp_path: Path, size: int, words: str
) -> None:
    """As large as the test claims, because 50 MB would have to be carried into the browser."""
    page = await open_page(browsing, listen_url)
    await page.evaluate(
        """(size) => {
          const { setTimeout } = window;
          window.setTimeout = (act, ms) => setTimeout(act, ms / 50);
          Object.defineProperty(HTMLMediaElement.prototype, 'duration', { get: () => Infinity });
          Object.defineProperty(File.prototype, 'size', { get: () => size });
        }""",
        size,
    )
    await page.locator("#file").set_input_files(write_wav(tmp_path / "silence.wav", 1))
    await expect(page.locator("#file-progress")).to_contain_text(words)


@pytest.mark.parametrize("error", ["NotAllowedError", "NotFoundError", "AbortError", "DataCloneError"])
async def test_an_error_with_a_file_never_blames_the_microphone(
    browsing: Browsing, listen_url: str, tmp_path: Path, error: str
) -> None:
    page = await open_page(browsing, listen_url)
    await page.evaluate(
        """(error) => {
          OfflineAudioContext.prototype.decodeAudioData = () => Promise.reject(new DOMException('', error));
        }""",
        error,
    )
    await page.locator("#file").set_input_files(write_wav(tmp_path / "silence.wav", 1))
    await expect(page.locator("#file-progress")).to_contain_text("cannot play this file")
    await expect(page.locator("#progress")).to_be_empty()


async def test_a_file_that_is_dropped_beside_its_place_does_not_take_the_browser_away(
    browsing: Browsing, listen_url: str
) -> None:
    page = await open_page(browsing, listen_url)
    prevented = await page.evaluate(
        """() => ['dragover', 'drop'].map((type) => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(['sound'], 'code.wav'));
          const heading = document.querySelector('h1');
          return !heading.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
        })"""
    )
    assert prevented == [True, True]


async def test_a_file_is_read_as_fast_while_the_page_is_hidden(
    browsing: Browsing, listen_url: str, tmp_path: Path
) -> None:
    page = await open_page(browsing, listen_url)
    # In a hidden page, browsers let timers wait for a second, and later for a minute.
    await page.evaluate("window.setTimeout = new Proxy(setTimeout, { apply: (timer, _, [act]) => timer(act, 60_000) })")
    await page.locator("#file").set_input_files(write_wav(tmp_path / "silence.wav", 3))
    await expect(page.locator("#file-progress")).to_contain_text("There is no Code in this file")


async def test_the_page_responds_while_a_file_is_read(browsing: Browsing, listen_url: str, tmp_path: Path) -> None:
    page = await open_page(browsing, listen_url)
    await page.evaluate(
        """() => {
          window.ticks = 0;
          const { dataset } = document.getElementById('file-progress');
          setInterval(() => dataset.state === 'reading' && (window.ticks += 1), 10);
        }"""
    )
    await page.locator("#file").set_input_files(write_wav(tmp_path / "silence.wav", 10))
    await expect(page.locator("#file-progress")).to_contain_text("There is no Code in this file")
    assert await page.evaluate("window.ticks") >= 5, "the file is read in ten pieces"


def stream_flac(wav: bytes) -> bytes:
    """Return the sound as a FLAC stream of unknown length: RFC 9639, 8.2."""
    sound, rate_hz = soundfile.read(io.BytesIO(wav))
    file = io.BytesIO()
    soundfile.write(file, sound, rate_hz, format="FLAC")
    content = bytearray(file.getvalue())
    content[21:42] = bytes([content[21] & 0xF0]) + bytes(20)
    return bytes(content)


def write_text(file: Path, text: str = "no sound at all\n" * 100) -> Path:
    file.write_text(text, encoding="utf-8")
    return file
