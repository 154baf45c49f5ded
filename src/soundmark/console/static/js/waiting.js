// A sign that the next page is on its way, for the seconds in which the service is slow. Without a script, only the
// browser's own sign says so.

const SHOWN_AFTER_MS = 400;
// The console answers within 25 s, and says then what failed: docs/adr/0053.
const HIDDEN_AFTER_MS = 30_000;
// The paths of downloads, which lead to no page.
const FILE = /\/(?:export|download|bundle|[^/]+\.(?:csv|json|wav))$/;

/**
 * Show the layout's sign once the answer to a link or a form is late, until the next page, or this one again, is shown.
 *
 * @param {Document} root
 */
export function showWaiting(root) {
  const sign = root.getElementById("awaited");
  if (sign === null) return;
  /** @type {number[]} */
  let timers = [];
  const hide = () => {
    for (const timer of timers) window.clearTimeout(timer);
    sign.hidden = true;
  };
  const wait = () => {
    hide();
    timers = [window.setTimeout(() => (sign.hidden = false), SHOWN_AFTER_MS), window.setTimeout(hide, HIDDEN_AFTER_MS)];
  };
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
    const action = chosen ?? form.getAttribute("action") ?? "";
    if (!event.defaultPrevented && form.method !== "dialog" && !FILE.test(new URL(action, location.href).pathname))
      wait();
  });
  window.addEventListener("pageshow", hide);
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
