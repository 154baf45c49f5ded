// Reporting a Code that harms people to the operator of the service.

import { getElement } from "../elements.js";
import { say } from "./words.js";

/**
 * @import { ReceiverFailure, Receiver } from "/static/receiver/index.js"
 * @import { AbuseCategory } from "/static/receiver/receiver.js"
 */

/**
 * Let the person report a Code once, with the form in these details.
 *
 * @param {HTMLElement} details
 * @param {Receiver} receiver
 * @param {string} token
 */
export function offerReport(details, receiver, token) {
  const form = getElement(HTMLFormElement, "form", details);
  const state = getElement(HTMLElement, '[data-slot="reporting"]', details);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = new FormData(form);
    const button = getElement(HTMLButtonElement, "button", form);
    button.disabled = true;
    say(state, "reporting", "sending");
    try {
      await receiver.reportAbuse(token, /** @type {AbuseCategory} */ (String(given.get("category"))), {
        text: String(given.get("text")),
        contact: String(given.get("contact")).trim() || null,
      });
      form.hidden = true;
      say(state, "reporting", "sent");
    } catch (error) {
      const { reason } = /** @type {Partial<ReceiverFailure>} */ (error);
      say(state, "reporting", reason === "rateLimited" ? "rateLimited" : "failed");
      button.disabled = false;
    }
  });
}
