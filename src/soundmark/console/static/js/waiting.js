// A sign that the next page is on its way, for the seconds in which the service is slow. Without a script, only the
// browser's own sign says so.

import { getData } from "./elements.js";

const SHOWN_AFTER_MS = 400;
// The console answers within 25 s, and says then what failed: docs/adr/0053.
const HIDDEN_AFTER_MS = 30_000;
// The paths of downloads, which lead to no page.
const FILE = /\/(?:export|download|bundle|[^/]+\.(?:csv|json|wav))$/;
// The path of a deletion, which takes as long as there is something to delete.
const DELETION = /\/delete$/;

/** @type {number[]} */
let timers = [];

/** Show the layout's sign once the answer to a link or a form is late, until the next page, or this one, is shown. */
export function showWaiting() {
  // After every other listener, which may have kept the page.
  window.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (link instanceof HTMLAnchorElement && link.target === "" && leavesPage(new URL(link.href))) wait();
  });
  window.addEventListener("submit", (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const chosen = /** @type {SubmitEvent} */ (event).submitter?.getAttribute("formaction");
    // A control named `action` would hide the form's own property.
    const { pathname } = new URL(chosen ?? form.getAttribute("action") ?? "", location.href);
    if (event.defaultPrevented || form.method === "dialog" || FILE.test(pathname)) return;
    wait(form.method === "post" && DELETION.test(pathname));
  });
  window.addEventListener("pageshow", stopWaiting);
}

/**
 * Show the sign if nothing else is shown soon, and hide it when the console would have answered.
 *
 * @param {boolean} [isUnbounded] whether the console may take any time to answer
 */
export function wait(isUnbounded = false) {
  clearTimers();
  timers = [window.setTimeout(showSign, SHOWN_AFTER_MS)];
  if (!isUnbounded) timers.push(window.setTimeout(stopWaiting, HIDDEN_AFTER_MS));
}

/** Hide the sign: the answer is there. */
export function stopWaiting() {
  clearTimers();
  document.getElementById("awaited")?.replaceChildren();
}

/** Write the sign's text, which is empty until then: screen readers say what changes in it. */
function showSign() {
  const sign = document.getElementById("awaited");
  if (sign === null || sign.hasChildNodes()) return;
  const text = document.createElement("span");
  text.textContent = getData(sign, "text");
  sign.append(text);
}

function clearTimers() {
  for (const timer of timers) window.clearTimeout(timer);
}

/**
 * Return whether a link leads to another page; a file or a part of this page leaves it where it is.
 *
 * @param {URL} url
 */
function leavesPage(url) {
  const isPart = url.hash !== "" && url.pathname === location.pathname && url.search === location.search;
  return url.origin === location.origin && !isPart && !FILE.test(url.pathname);
}
