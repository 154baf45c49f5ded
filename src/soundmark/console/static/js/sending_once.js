// A double click must not send a form twice.

/** Ignore every sending of a form after the first, until the page is shown again by the back button. */
export function sendFormsOnce(root) {
  const sent = new Set();
  root.addEventListener("submit", (event) => {
    // A form that only asks may be sent again: a download leaves its page where it is.
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (sent.has(event.target)) event.preventDefault();
    sent.add(event.target);
  });
  window.addEventListener("pageshow", () => sent.clear());
}
