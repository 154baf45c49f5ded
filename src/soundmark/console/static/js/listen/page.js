// The page that hears Codes: it joins the microphone, files, the self-test and what was heard.

import { hearFile, listen, Receiver } from "/static/receiver/index.js";

import { getData, getElement, takeFiles } from "../elements.js";
import { Consent } from "./consent.js";
import { examine } from "./diagnosis.js";
import { checkDuration, nameFileFailure } from "./files.js";
import { Heard } from "./heard.js";
import { Packs } from "./packs.js";
import { findObstacle, nameMicrophoneFailure } from "./obstacles.js";
import { testDevice } from "./self_test.js";
import { makeVisible } from "./safe_text.js";
import { SpectrumView } from "./spectrum.js";
import { describe, fillState, say } from "./words.js";

const page = getElement(HTMLElement, "#listen");
const [start, stop, test] = ["#start", "#stop", "#test"].map((id) => getElement(HTMLButtonElement, id));
const [file, drop] = [getElement(HTMLInputElement, "#file"), getElement(HTMLElement, "#drop")];
const [progress, fileProgress] = ["#progress", "#file-progress"].map((id) => getElement(HTMLElement, id));
const spectrum = new SpectrumView(getElement(HTMLElement, "#spectrum"));
// Without a publisher there is no box, and the others are not used.
const { publisherUrl = "", publisherIntegrationId = "" } = page.dataset;
const publisher = { url: publisherUrl, integrationId: publisherIntegrationId };
/** @type {HTMLInputElement | null} */
const box = document.querySelector("input#consent");
const consent = new Consent(box, document.getElementById("consent-state"), publisher);
const receiver = new Receiver(getData(page, "coreUrl"));
const heard = new Heard(getElement(HTMLElement, "#heard"), receiver, consent, getElement(HTMLElement, "#before"));
// What is heard all the time is reported again this often, because its answer may have ended by then.
const REPEAT_AFTER_S = 10;

/** @type {import("/static/receiver/hearing/listening.js").Listening | null} */
let listening = null;
/** Aborted when the listening stops, for whatever reason. */
let stopping = new AbortController();
/** @type {File | null} The file that was chosen last: what becomes of one before it is not said beside its name. */
let read = null;
// A button that is disabled would lose the focus, so a second click is ignored instead.
let isBusy = false;

async function startListening() {
  say(progress, "progress", "asking");
  /** @type {"listening" | "interrupted"} */
  let state = "listening";
  try {
    listening = await listen((frame) => heard.add(frame.token), {
      repeatAfterS: REPEAT_AFTER_S,
      onState: (changed) => {
        state = changed;
        if (listening === null) return;
        // Unplugged, or the decoder failed: nothing goes on by itself.
        if (listening.track.readyState === "ended") stopListening("ended");
        else say(progress, "progress", state);
      },
    });
  } catch (error) {
    say(progress, "progress", nameMicrophoneFailure(/** @type {Error} */ (error)));
    return null;
  }
  stopping = new AbortController();
  spectrum.show(listening.analyser);
  show(true);
  say(progress, "progress", state);
  // It may have ended before anybody could hear of it.
  if (listening.track.readyState === "ended") await stopListening("ended");
  return listening;
}

/** @param {"ended" | "stopped"} reason */
async function stopListening(reason) {
  const stopped = listening;
  listening = null;
  stopping.abort();
  spectrum.hide();
  show(false);
  say(progress, "progress", reason);
  await stopped?.stop();
}

/** @param {boolean} isListening */
function show(isListening) {
  const hadFocus = document.activeElement === start || document.activeElement === stop;
  start.hidden = isListening;
  stop.hidden = !isListening;
  if (hadFocus) (isListening ? stop : start).focus();
}

/** @param {File | undefined} chosen */
async function readFile(chosen) {
  if (chosen === undefined) return;
  read = chosen;
  // What becomes of this file stands alone, above what was heard before it.
  heard.setAside();
  const name = makeVisible(chosen.name);
  getElement(HTMLElement, "#file-name").textContent = name;
  say(fileProgress, "progress", "reading");
  try {
    await checkDuration(chosen);
    const frames = await hearFile(chosen);
    const findings = frames.length === 0 ? await examine(chosen) : [];
    if (read !== chosen) return;
    if (frames.length === 0) return sayWhyEmpty(findings);
    fileProgress.replaceChildren();
    delete fileProgress.dataset.state;
    for (const frame of frames) heard.add(frame.token, name);
  } catch (error) {
    if (read === chosen) say(fileProgress, "progress", nameFileFailure(error));
  }
}

/** @param {import("./diagnosis.js").Finding[]} findings */
function sayWhyEmpty(findings) {
  say(fileProgress, "progress", "file_empty");
  for (const [name, values] of findings) fileProgress.append(" ", describe("lack", name, values));
}

async function startTest() {
  const result = getElement(HTMLElement, "#test-result");
  result.replaceChildren(describe("progress", "testing"));
  delete result.dataset.verdict;
  const wasListening = listening !== null;
  const used = listening ?? (await startListening());
  if (used === null) {
    // A rate that is too low is a verdict of its own; without a microphone there is none, but a reason, far above.
    if (progress.dataset.state === "rate_too_low") showVerdict(result, "cannot", [["rate_too_low"]]);
    else result.replaceChildren(progress.textContent);
    return;
  }
  const { signal } = stopping;
  try {
    const { verdict, findings } = await testDevice(used, signal);
    showVerdict(result, verdict, findings);
  } catch (error) {
    if (!signal.aborted) throw error;
    // What was measured until the microphone stopped proves nothing.
    result.replaceChildren();
  }
  if (!wasListening && listening === used) await stopListening("stopped");
}

/**
 * @param {HTMLElement} result
 * @param {string} verdict
 * @param {import("./self_test.js").Finding[]} findings
 */
function showVerdict(result, verdict, findings) {
  const list = document.createElement("ul");
  for (const [name, values] of findings) {
    const item = document.createElement("li");
    item.append(describe("finding", name, values));
    list.append(item);
  }
  result.replaceChildren(...fillState(verdict), list);
  result.dataset.verdict = verdict;
}

/**
 * Return a handler that does nothing while another one is at work.
 *
 * @param {() => Promise<unknown>} act
 */
function oneAtATime(act) {
  return async () => {
    if (isBusy) return;
    isBusy = true;
    try {
      await act();
    } finally {
      isBusy = false;
    }
  };
}

// A file that is dropped beside the place for it would take the browser away from the page.
for (const type of ["dragover", "drop"]) addEventListener(type, (event) => event.preventDefault());

const obstacle = await findObstacle();
if (obstacle !== null) {
  getElement(HTMLElement, "#obstacle").append(...fillState(obstacle));
} else {
  await consent.open();
  await new Packs(getElement(HTMLElement, "#without-network"), receiver).open();
  for (const control of [start, test, file]) control.disabled = false;
  start.addEventListener("click", oneAtATime(startListening));
  stop.addEventListener("click", () => stopListening("stopped"));
  test.addEventListener("click", oneAtATime(startTest));
  takeFiles(file, ([chosen]) => readFile(chosen));
  for (const type of ["dragenter", "dragover"]) drop.addEventListener(type, (event) => event.preventDefault());
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    readFile(event.dataTransfer?.files[0]);
  });
}
page.dataset.ready = "";
