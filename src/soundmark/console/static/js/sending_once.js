// A double click must not send a form twice.

/**
 * Ignore every sending of a form after the first, until the page is shown again by the back button.
 *
 * @param {Document} root
 */
export function sendFormsOnce(root) {
  const sent = new Set();
  root.addEventListener("submit", (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    // A form that only asks may be sent again: a download leaves its page where it is.
    if (event.defaultPrevented || form.method !== "post") return;
    if (sent.has(form)) event.preventDefault();
    sent.add(form);
  });
  window.addEventListener("pageshow", () => sent.clear());
}
