// The resource of an intent as nested lists of text, with links that only the person opens.

import { getElement } from "../elements.js";
import { copyTemplate, fill } from "./words.js";
import { looksLikeAddress, makeVisible, readLink } from "./safe_text.js";

/**
 * Return what shows a value of JSON.
 *
 * @param {unknown} value
 * @returns {Node}
 */
export function writeResource(value) {
  if (Array.isArray(value)) return writeList(value);
  if (typeof value === "object" && value !== null) return writeMembers(value);
  return typeof value === "string" ? writeText(value) : document.createTextNode(String(value));
}

/** @param {unknown[]} values */
function writeList(values) {
  const list = document.createElement("ol");
  for (const value of values) {
    const item = document.createElement("li");
    item.append(writeResource(value));
    list.append(item);
  }
  return list;
}

/** @param {object} members */
function writeMembers(members) {
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [name, value] of Object.entries(members)) {
    const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
    const isolated = document.createElement("bdi");
    isolated.textContent = makeVisible(name);
    term.append(isolated);
    detail.append(writeResource(value));
    list.append(term, detail);
  }
  return list;
}

/** @param {string} text */
function writeText(text) {
  const url = readLink(text);
  if (url !== null) return writeLink(url);
  const shown = looksLikeAddress(text) ? copyTemplate("inert") : document.createDocumentFragment();
  if (!shown.firstElementChild) {
    const isolated = document.createElement("bdi");
    isolated.textContent = makeVisible(text);
    shown.append(isolated);
  } else {
    fill(shown, "text", makeVisible(text));
  }
  return shown;
}

/**
 * The address that would be opened, and not the text that led to it; `host` is in ASCII, so look-alikes show.
 *
 * @param {URL} url
 */
function writeLink(url) {
  const link = copyTemplate("link");
  fill(link, "text", url.href);
  fill(link, "host", url.host);
  fill(link, "shown_host", url.host);
  getElement(HTMLAnchorElement, "a", link).href = url.href;
  return link;
}
