// The form of an issuance: its verdict while somebody types, and what is kept before it is sent.

import { getData, getElement } from "../elements.js";
import { clearRefusalsOnEdit } from "../refusals.js";
import { stopWaiting, wait } from "../waiting.js";
import { completeAddress, showPreview } from "./preview.js";
import { find, makeHidden, remember } from "./remembering.js";

const PAUSE_MS = 400;
const form = getElement(HTMLFormElement, "#issuance");
const verdict = getElement(HTMLElement, "#verdict");
const preview = getElement(HTMLElement, "#preview");

let timer = 0;
let asking = new AbortController();
let isSending = false;

function readFields() {
  // No field of the form is a file.
  return new URLSearchParams(/** @type {[string, string][]} */ ([...new FormData(form)]));
}

/**
 * Return the value of a field, or which of several with one name is chosen.
 *
 * @param {string} name
 */
function readField(name) {
  return /** @type {RadioNodeList | HTMLInputElement} */ (form.elements.namedItem(name)).value;
}

/**
 * @param {string} sentence
 * @param {boolean} [wouldIssue]
 */
function show(sentence, wouldIssue) {
  verdict.textContent = sentence;
  if (wouldIssue === undefined) delete verdict.dataset.wouldIssue;
  else verdict.dataset.wouldIssue = wouldIssue ? "yes" : "no";
}

/** Return whether the form is complete enough to be judged: half an address is no mistake yet. */
function isComplete() {
  const isLink = readField("mode") === "link";
  const needed = isLink ? ["url"] : ["type", "action", "resource"];
  return form.checkValidity() && needed.every((name) => readField(name).trim() !== "");
}

async function judge() {
  asking.abort();
  asking = new AbortController();
  if (!isComplete()) {
    show("");
    return;
  }
  show(getData(form, "checking"));
  try {
    const response = await fetch(getData(form, "verdict"), {
      method: "POST",
      body: readFields(),
      signal: asking.signal,
    });
    /** @type {{sentence: string, would_issue?: boolean}} */
    const { sentence, would_issue: wouldIssue } = await response.json();
    show(sentence, wouldIssue);
  } catch (error) {
    // A newer question took its place, or there is no answer; the server judges the form anyway.
    if (/** @type {Error} */ (error).name !== "AbortError") show("");
  }
}

/** Keep the recovery tuple. Returns false if the form must not be sent now, because nothing would be kept of it. */
async function keep() {
  const [person, project] = [getData(form, "person"), getData(form, "project")];
  const response = await fetch(getData(form, "tuple"), { method: "POST", body: readFields() });
  // Core does not answer, or asks for a pause that may be over when the form is sent.
  if (response.status >= 500 || response.status === 429) return false;
  // A refusal, or the page on which to sign in: the server will say so of the form, too, and issue nothing.
  if (!response.ok || !response.headers.get("content-type")?.startsWith("application/json")) return true;
  const key = readField("idempotency_key");
  remember({ key, ...(await response.json()), person, project });
  const kept = find(key);
  if (form.elements.namedItem("body") === null && kept !== null && isSentBefore.has(key)) {
    for (const name of /** @type {const} */ (["route", "body", "begun_at"])) form.append(makeHidden(name, kept[name]));
  }
  return true;
}

// Keys that were kept before this page was shown, so their issuance may have taken place.
const isSentBefore = new Set([readField("idempotency_key")].filter((key) => find(key) !== null));

async function send() {
  isSending = true;
  asking.abort();
  wait();
  // Nothing is sent unless it was kept.
  if (await keep().catch(() => false)) {
    // No event says that a script sends a form.
    wait();
    HTMLFormElement.prototype.submit.call(form);
    return;
  }
  stopWaiting();
  isSending = false;
  show(getData(form, "unreachable"), false);
}

/** Judge the form when somebody pauses, and show at once what it stands for. */
function follow() {
  clearTimeout(timer);
  timer = setTimeout(judge, PAUSE_MS);
  showPreview(preview, readField);
}

/** The ends of the presets, in minutes from now; the one of today is another each minute. */
const PRESETS_MINUTES = { hour: 60, week: 7 * 24 * 60 };

/** @param {string} preset */
function choosePreset(preset) {
  const end = new Date();
  if (preset === "today") end.setHours(23, 59);
  else end.setMinutes(end.getMinutes() + PRESETS_MINUTES[/** @type {keyof typeof PRESETS_MINUTES} */ (preset)]);
  const shifted = new Date(end.getTime() - end.getTimezoneOffset() * 60_000);
  const field = getElement(HTMLInputElement, "#field-expires_at");
  field.value = shifted.toISOString().slice(0, "2026-11-27T02:30".length);
  field.dispatchEvent(new Event("input", { bubbles: true }));
}

clearRefusalsOnEdit(form);
form.addEventListener("input", follow);
/** @type {NodeListOf<HTMLButtonElement>} */
const presets = form.querySelectorAll("button[name=preset]");
for (const button of presets) {
  button.type = "button";
  button.addEventListener("click", () => choosePreset(button.value));
}
const address = getElement(HTMLInputElement, "#field-url");
address.inputMode = "url";
address.addEventListener("change", () => {
  address.value = completeAddress(address.value.trim());
});
if (document.getElementById("trouble") === null && readField("mode") === "link") address.focus();
showPreview(preview, readField);
form.addEventListener("submit", (event) => {
  if (event.submitter?.getAttribute("name") === "check") return;
  event.preventDefault();
  clearTimeout(timer);
  if (!isSending) send();
});
window.addEventListener("pageshow", (event) => {
  isSending = false;
  // A page from the browser's memory may have issued already.
  if (event.persisted) isSentBefore.add(readField("idempotency_key"));
});
