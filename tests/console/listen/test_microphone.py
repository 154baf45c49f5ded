"""The page hears a WAV file that Chromium's fake microphone plays."""

import re
import shutil
import wave
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from support.browser.chromium import Browsing, running_browser, watched
from support.browser.listening_page import UNPLUG, microphone_at, open_listening_page
from support.codes.signed_answers import GENUINE, VECTORS
from support.codes.sounds import render_token
from support.processes.running_apps import served_in_thread

pytestmark = pytest.mark.xdist_group("browser")

REPOSITORY: Final = Path(__file__).parents[3]
GUIDE: Final = REPOSITORY / "docs" / "guides" / "receiving.md"
MODULES: Final = REPOSITORY / "sdk" / "js" / "src"


def write_broadcast(file: Path, token: str) -> Path:
    """Write what a microphone would hear: silence, the Code twice, silence, at a tenth of the volume with noise."""
    with wave.open(BytesIO(render_token(token))) as reader:
        code = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
        rate_hz = reader.getframerate()
    pause = np.zeros(rate_hz, "<i2")
    quiet = np.concatenate([pause, code, pause, code, pause]) / 10 + np.random.default_rng(0).normal(
        0, 30, 3 * rate_hz + 2 * len(code)
    )
    with wave.open(str(file), "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(quiet.astype("<i2").tobytes())
    return file


@pytest.fixture(scope="module")
async def browser_that_hears(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """A browser whose microphone plays a broadcast."""
    file = write_broadcast(tmp_path_factory.mktemp("microphone") / "broadcast.wav", GENUINE["token"])
    async with running_browser(microphone=file) as browser:
        yield browser


@pytest.fixture
async def hearing(browser_that_hears: Any) -> AsyncIterator[Browsing]:
    """Contexts and pages of the browser that hears."""
    async with watched(browser_that_hears) as browsing:
        yield browsing


async def open_page(browsing: Browsing, url: str, **options: Any) -> Page:
    page = await browsing.open_page(permissions=["microphone"], **options)
    await page.clock.set_fixed_time(GENUINE["now"])
    await open_listening_page(page, url)
    return page


IS_DRAWN: Final = """() => {
  const canvas = document.querySelector('#spectrum canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return data.some((channel) => channel > 0);
}"""


async def test_the_microphone_hears_a_code_once(hearing: Browsing, listen_url: str, stand_in: Any) -> None:
    stand_in.keys, stand_in.answers[GENUINE["token"]] = VECTORS["keys"], GENUINE["answer"]
    page = await open_page(hearing, listen_url)
    await page.get_by_role("button", name="Listen with the microphone").press("Enter")
    await expect(page.locator("#progress")).to_contain_text("Listening")
    await expect(page.locator("#stop")).to_be_focused()
    await expect(page.locator("#start")).to_be_hidden()
    await expect(page.locator("#heard article")).to_have_attribute("data-outcome", "verified", timeout=30_000)
    await expect(page.locator("#level")).to_contain_text("dB")
    assert await page.evaluate(IS_DRAWN), "the spectrum"
    await page.wait_for_timeout(5000)
    await page.get_by_role("button", name="Stop listening").click()
    await expect(page.locator("#progress")).to_contain_text("The microphone is off")
    await expect(page.locator("#spectrum")).to_be_hidden()
    assert stand_in.resolved == [GENUINE["token"]], "the Code is played at least twice"


async def test_the_self_test_is_honest_where_nothing_can_be_heard(hearing: Browsing, listen_url: str) -> None:
    """The fake microphone does not hear the loudspeaker: neither can be blamed, so nothing is concluded."""
    page = await open_page(hearing, listen_url)
    await page.get_by_role("button", name="Test this device").click()
    result = page.locator("#test-result[data-verdict]")
    await expect(result).to_be_visible(timeout=30_000)
    assert await result.get_attribute("data-verdict") == "undetermined"
    await expect(result).to_contain_text("The test could not determine whether this device can hear Codes")
    # The Code that the microphone plays meanwhile may pass for some of the tones, so no number of them is claimed.
    await expect(result).to_contain_text("did not hear the audible tone of the test, so the other tones prove nothing")
    await expect(result).to_contain_text("samples a second")
    await expect(page.locator("#progress")).to_contain_text("The microphone is off")


async def test_stopping_during_the_self_test_ends_it_without_a_verdict_and_listening_can_begin_again(
    browsing: Browsing, listen_url: str
) -> None:
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(48_000))
    await open_listening_page(page, listen_url)
    result = page.locator("#test-result")
    await page.get_by_role("button", name="Test this device").click()
    await expect(result).to_contain_text("Testing")
    await page.get_by_role("button", name="Stop listening").click()
    await expect(result).to_be_empty()
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text("Listening")
    assert await result.get_attribute("data-verdict") is None


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("NotAllowedError", "does not allow this page to use the microphone"),
        ("NotFoundError", "has no microphone"),
        ("NotReadableError", "cannot be used"),
        ("AbortError", "could not be started"),
    ],
)
async def test_an_unusable_microphone_is_explained(browsing: Browsing, listen_url: str, error: str, words: str) -> None:
    page = await browsing.open_page()
    await page.add_init_script(
        f"navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', '{error}'))"
    )
    await open_listening_page(page, listen_url)
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text(words)
    await expect(page.locator("#start")).to_be_visible()
    await page.get_by_role("button", name="Test this device").click()
    await expect(page.locator("#test-result")).to_contain_text(words)


@pytest.mark.parametrize(
    ("rate_hz", "joined", "words"),
    [(16_000, "true", "too few samples a second"), (48_000, "false", "cannot use this microphone at a sample rate")],
)
async def test_a_microphone_with_an_unusable_rate_is_said_and_switched_off(
    browsing: Browsing, listen_url: str, rate_hz: int, joined: str, words: str
) -> None:
    """Firefox joins no stream to a context of another rate."""
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(rate_hz))
    await page.add_init_script(
        f"""const {{ createMediaStreamSource }} = AudioContext.prototype;
        AudioContext.prototype.createMediaStreamSource = function (stream) {{
          if (!{joined}) throw new DOMException('', 'NotSupportedError');
          return createMediaStreamSource.call(this, stream);
        }};"""
    )
    await open_listening_page(page, listen_url)
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text(words)
    assert await page.evaluate("window.stream.getAudioTracks()[0].readyState") == "ended"


async def test_sound_that_the_browser_stops_is_said_and_goes_on_when_it_may(
    browsing: Browsing, listen_url: str
) -> None:
    """iOS interrupts a page for a call, and does not always let it go on by itself."""
    page = await browsing.open_page()
    await page.add_init_script(
        """window.AudioContext = class extends AudioContext {
          constructor(...options) {
            super(...options);
            window.kept = this;
          }
        };
        window.refuses = false;
        const { resume } = AudioContext.prototype;
        BaseAudioContext.prototype.resume = AudioContext.prototype.resume = function () {
          return window.refuses ? Promise.reject(new DOMException('', 'InvalidStateError')) : resume.call(this);
        };"""
    )
    await page.add_init_script(microphone_at(48_000))
    await open_listening_page(page, listen_url)
    progress = page.locator("#progress")
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(progress).to_contain_text("Listening. A Code")
    await page.evaluate("window.refuses = true; window.kept.suspend()")
    await expect(progress).to_contain_text("has interrupted the microphone")
    await page.evaluate("window.refuses = false")
    await page.get_by_role("heading", level=1).click()
    await expect(progress).to_contain_text("Listening. A Code")
    await page.evaluate("window.kept.suspend()")
    await page.wait_for_function("window.kept.state === 'running'")
    await expect(progress).to_contain_text("Listening. A Code")
    await page.get_by_role("button", name="Stop listening").click()
    await expect(progress).to_contain_text("The microphone is off")


async def test_a_device_that_went_offline_before_listening_is_said_and_the_microphone_switched_off(
    browsing: Browsing, listen_url: str
) -> None:
    """Playwright sees no request of a worklet, so this fails as the standard says that it fails without a network."""
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(48_000))
    await page.add_init_script(
        "AudioWorklet.prototype.addModule = () => Promise.reject(new DOMException('', 'AbortError'))"
    )
    await open_listening_page(page, listen_url)
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text("could not be loaded")
    assert await page.evaluate("window.stream.getAudioTracks()[0].readyState") == "ended"


async def test_a_microphone_that_ends_while_the_page_loads_what_hears_is_disconnected(
    browsing: Browsing, listen_url: str
) -> None:
    """Its event comes before anybody listens for it."""
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(48_000))
    await page.add_init_script(
        """const { addModule } = AudioWorklet.prototype;
        AudioWorklet.prototype.addModule = function (url) {
          window.stream.getAudioTracks()[0].stop();
          return addModule.call(this, url);
        };"""
    )
    await open_listening_page(page, listen_url)
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text("was disconnected")
    await expect(page.locator("#start")).to_be_visible()
    await expect(page.locator("#spectrum")).to_be_hidden()


@pytest.mark.parametrize("end", ["window.node.onprocessorerror()", UNPLUG], ids=["the decoder fails", "unplugged"])
async def test_listening_that_has_ended_is_said_and_can_begin_again(
    browsing: Browsing, listen_url: str, end: str
) -> None:
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(48_000))
    await page.add_init_script(
        """window.AudioWorkletNode = class extends AudioWorkletNode {
          constructor(...options) {
            super(...options);
            window.node = this;
          }
        };"""
    )
    await open_listening_page(page, listen_url)
    progress, start = page.locator("#progress"), page.get_by_role("button", name="Listen with the microphone")
    for _ in range(2):
        await start.click()
        await expect(progress).to_contain_text("Listening. A Code")
        await page.evaluate(end)
        await expect(progress).to_contain_text("Start again")
        await expect(start).to_be_visible()
        await expect(page.locator("#spectrum")).to_be_hidden()


async def test_what_becomes_of_a_file_is_said_beside_what_the_microphone_does(
    browsing: Browsing, listen_url: str
) -> None:
    page = await browsing.open_page()
    await page.add_init_script(microphone_at(48_000))
    await open_listening_page(page, listen_url)
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text("Listening")
    await page.locator("#file").set_input_files({"name": "a.wav", "mimeType": "audio/wav", "buffer": b"no sound"})
    await expect(page.locator("#file-progress")).to_contain_text("cannot play this file")
    await expect(page.locator("#progress")).to_contain_text("Listening")


async def test_the_example_of_the_guide_hears_on_a_page_of_somebody_else(
    hearing: Browsing, stand_in: Any, tmp_path: Path
) -> None:
    """As printed, under the policy that the guide names, beside a copy of the modules."""
    stand_in.keys, stand_in.answers[GENUINE["token"]] = VECTORS["keys"], GENUINE["answer"]
    (example,) = re.findall(r"```js\n(import \{ listen, .*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "page.js").write_text(example.replace("https://soundmark.example.org", stand_in.url), encoding="utf-8")
    shutil.copytree(MODULES, tmp_path / "soundmark-receiver")
    policy = f"default-src 'none'; script-src 'self'; connect-src {stand_in.url}"

    async def show(_: Request) -> HTMLResponse:
        body = '<title>Example</title><button id="listen">Listen</button><p id="heard"></p>'
        script = '<script type="module" src="/page.js"></script>'
        return HTMLResponse(body + script, headers={"content-security-policy": policy})

    with served_in_thread(Starlette(routes=[Route("/", show), Mount("/", StaticFiles(directory=tmp_path))])) as url:
        page = await hearing.open_page(permissions=["microphone"])
        await page.clock.set_fixed_time(GENUINE["now"])
        await page.goto(url)
        await page.get_by_role("button").click()
        intent = GENUINE["answer"]["intent"]
        await expect(page.locator("#heard")).to_have_text(f"{intent['type']} {intent['action']}", timeout=30_000)
    assert stand_in.resolved == [GENUINE["token"]]


async def test_the_microphone_is_asked_for_sound_as_it_is_and_a_code_is_reported_again_every_ten_seconds(
    hearing: Browsing, listen_url: str
) -> None:
    page = await open_page(hearing, listen_url)
    await page.evaluate(
        """() => {
          window.AudioWorkletNode = class extends AudioWorkletNode {
            constructor(context, name, options) {
              super(context, name, options);
              window.options = options.processorOptions;
            }
          };
          const { getUserMedia } = MediaDevices.prototype;
          navigator.mediaDevices.getUserMedia = (asked) => {
            window.asked = asked;
            return getUserMedia.call(navigator.mediaDevices, asked);
          };
        }"""
    )
    await page.get_by_role("button", name="Listen with the microphone").click()
    await expect(page.locator("#progress")).to_contain_text("Listening")
    asked = await page.evaluate("window.asked")
    assert asked == {"audio": {"echoCancellation": False, "autoGainControl": False, "noiseSuppression": False}}
    assert await page.evaluate("window.options") == {"repeatAfterS": 10, "periodS": None}


# Instead of a microphone, what the page plays is recorded, through a filter that stands for the device.
LOOP_BACK: Final = """(highestHz) => {
  const connect = AudioNode.prototype.connect;
  const contexts = new Map();
  navigator.mediaDevices.getUserMedia = async () => {
    const context = new AudioContext({ sampleRate: 48000 });
    const destination = context.createMediaStreamDestination();
    const noise = new AudioBufferSourceNode(context, { loop: true });
    noise.buffer = new AudioBuffer({ length: 48000, sampleRate: 48000 });
    noise.buffer.getChannelData(0).forEach((_, at, samples) => (samples[at] = (Math.random() - 0.5) / 2000));
    const filters = [0, 1, 2, 3].map(() => new BiquadFilterNode(context, { type: 'lowpass', frequency: highestHz }));
    // The noise of the room, and that of the microphone itself.
    connect.call(noise, filters[0]);
    connect.call(noise, destination);
    filters.reduce((from, to) => connect.call(from, to));
    connect.call(filters.at(-1), destination);
    noise.start();
    AudioNode.prototype.connect = function (to, ...rest) {
      if (to === this.context.destination && this.context !== context) {
        const recorded = this.context.createMediaStreamDestination();
        connect.call(this, recorded);
        connect.call(context.createMediaStreamSource(recorded.stream), filters[0]);
      }
      return connect.call(this, to, ...rest);
    };
    return destination.stream;
  };
}"""


@pytest.mark.parametrize(("highest_hz", "verdict"), [(24_000, "hears"), (3_000, "doubtful")])
async def test_the_self_test_hears_the_tones_that_the_device_plays(
    hearing: Browsing, listen_url: str, highest_hz: int, verdict: str
) -> None:
    page = await open_page(hearing, listen_url)
    await page.evaluate(LOOP_BACK, highest_hz)
    await page.get_by_role("button", name="Test this device").click()
    result = page.locator("#test-result[data-verdict]")
    await expect(result).to_be_visible(timeout=30_000)
    assert await result.get_attribute("data-verdict") == verdict, await result.inner_text()
