// The form of an issuance: its verdict while somebody types, and what is kept before it is sent.

import { find, makeHidden, remember } from "./remembering.js";

const PAUSE_MS = 400;
const form = document.getElementById("issuance");
const verdict = document.getElementById("verdict");

let timer = 0;
let asking = new AbortController();
let isSending = false;

function readFields() {
  return new URLSearchParams(new FormData(form));
}

function show(sentence, wouldIssue) {
  verdict.textContent = sentence;
  if (wouldIssue === undefined) delete verdict.dataset.wouldIssue;
  else verdict.dataset.wouldIssue = wouldIssue ? "yes" : "no";
}

/** Return whether the form is complete enough to be judged: half an address is no mistake yet. */
function isComplete() {
  const isLink = form.elements.namedItem("mode").value === "link";
  const needed = isLink ? ["url"] : ["type", "action", "resource"];
  return form.checkValidity() && needed.every((name) => form.elements.namedItem(name).value.trim() !== "");
}

async function judge() {
  asking.abort();
  asking = new AbortController();
  if (!isComplete()) {
    show("");
    return;
  }
  show(form.dataset.checking);
  try {
    const response = await fetch(form.dataset.verdict, { method: "POST", body: readFields(), signal: asking.signal });
    const { sentence, would_issue: wouldIssue } = await response.json();
    show(sentence, wouldIssue);
  } catch (error) {
    // A newer question took its place, or there is no answer; the server judges the form anyway.
    if (error.name !== "AbortError") show("");
  }
}

/** Keep the recovery tuple. Returns false if the form must not be sent now, because nothing would be kept of it. */
async function keep() {
  const { person, project } = form.dataset;
  const response = await fetch(form.dataset.tuple, { method: "POST", body: readFields() });
  if (response.status >= 500) return false;
  // A refusal, or the page on which to sign in: the server will say so of the form, too, and issue nothing.
  if (!response.ok || !response.headers.get("content-type")?.startsWith("application/json")) return true;
  const key = form.elements.namedItem("idempotency_key").value;
  remember({ key, ...(await response.json()), person, project });
  const kept = find(key);
  if (form.elements.namedItem("body") === null && kept !== null && isSentBefore.has(key)) {
    for (const name of ["route", "body", "begun_at"]) form.append(makeHidden(name, kept[name]));
  }
  return true;
}

// Keys that were kept before this page was shown, so their issuance may have taken place.
const isSentBefore = new Set([form.elements.namedItem("idempotency_key").value].filter((key) => find(key) !== null));

async function send() {
  isSending = true;
  asking.abort();
  try {
    if (await keep()) HTMLFormElement.prototype.submit.call(form);
    else {
      isSending = false;
      show(form.dataset.unreachable, false);
    }
  } catch {
    isSending = false;
    show(form.dataset.unreachable, false);
  }
}

form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(judge, PAUSE_MS);
});
form.addEventListener("submit", (event) => {
  if (event.submitter?.name === "check") return;
  event.preventDefault();
  clearTimeout(timer);
  if (!isSending) send();
});
window.addEventListener("pageshow", (event) => {
  isSending = false;
  // A page from the browser's memory may have issued already.
  if (event.persisted) isSentBefore.add(form.elements.namedItem("idempotency_key").value);
});
