// What listeners will see of a Code, while somebody types it.

import { getElement } from "../elements.js";

/**
 * Return an address, with `https://` before one that begins with a host, as the server completes it.
 *
 * @param {string} text
 */
export function completeAddress(text) {
  const host = text.split(/[/?#]/, 1)[0];
  if (text.includes("://") || !host.includes(".") || host.includes("@")) return text;
  return /^[a-z][a-z0-9+.-]*:(?![0-9])/i.test(text) ? text : `https://${text}`;
}

/**
 * Show what the fields stand for, or nothing while they are incomplete.
 *
 * @param {HTMLElement} card
 * @param {(name: string) => string} readField
 */
export function showPreview(card, readField) {
  const isLink = readField("mode") === "link";
  const url = isLink ? readUrl(completeAddress(readField("url").trim())) : null;
  const intent = [readField("type"), readField("action")].map((text) => text.trim());
  card.hidden = isLink ? url === null : intent.includes("");
  /** @type {(name: string, text: string) => void} */
  const fill = (name, text) => {
    getElement(HTMLElement, `.${name}`, card).textContent = text;
  };
  fill("title", isLink ? readField("title").trim() : "");
  fill("host", url?.host ?? "");
  fill("text", url === null ? intent.join(", ") : `${url.pathname}${url.search}${url.hash}`.replace(/^\/$/, ""));
}

/** @param {string} text */
function readUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url?.protocol === "https:" ? url : null;
}
