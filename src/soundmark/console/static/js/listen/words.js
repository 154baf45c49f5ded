// The words of the page, which stand in its templates in the person's language.

import { getElement } from "../elements.js";

/** @typedef {Record<string, string | number>} Values */

/**
 * Return the content of a template, to be filled in.
 *
 * @param {string} id
 */
export function copyTemplate(id) {
  return copy(`#${id}`);
}

/**
 * Return the words of a message, with its `[values]` filled in; numbers as the page's language writes them.
 *
 * @param {string} kind
 * @param {string} name
 * @param {Values} [values]
 */
export function describe(kind, name, values = {}) {
  const words = copy(`[data-${kind}="${name}"]`).textContent;
  return words.replace(/\[(\w+)\]/g, (_, key) => write(values[key]));
}

/**
 * Show a message in an element.
 *
 * @param {HTMLElement} element
 * @param {string} kind
 * @param {string} name
 * @param {Values} [values]
 */
export function say(element, kind, name, values) {
  element.textContent = describe(kind, name, values);
  element.dataset.state = name;
}

/**
 * Return the heading and the explanation of a state.
 *
 * @param {string} name
 */
export function fillState(name) {
  return [...copy(`[data-state="${name}"]`).childNodes];
}

/**
 * Put a text into the slot of a filled template.
 *
 * @param {DocumentFragment} fragment
 * @param {string} slot
 * @param {string} text
 */
export function fill(fragment, slot, text) {
  getElement(HTMLElement, `[data-slot="${slot}"]`, fragment).textContent = text;
}

/**
 * Return a copy of the content of a template.
 *
 * @param {string} selector
 */
function copy(selector) {
  const { content } = getElement(HTMLTemplateElement, `template${selector}`);
  return /** @type {DocumentFragment} */ (content.cloneNode(true));
}

/** @param {string | number} value */
function write(value) {
  return typeof value === "number" ? value.toLocaleString(document.documentElement.lang) : value;
}
