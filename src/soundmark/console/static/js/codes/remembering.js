// Issuances whose answer is not known yet. Each is kept here for at most 23 hours, and no credential is among them.

import { getData, getElement } from "../elements.js";
import { findLocale } from "../local_times.js";

const PREFIX = "soundmark.issuance.";
const KEPT_MS = 23 * 3600 * 1000;
const ANSWERED = /^#answered=([A-Za-z0-9._~-]{16,128})$/;

/**
 * @typedef {object} Issuance
 * @property {string} key
 * @property {string} route
 * @property {string} body
 * @property {string} begun_at
 * @property {string} person
 * @property {string} project
 */

/**
 * Keep an issuance under its idempotency key; one that is kept already stays as it is, because it may have taken place.
 *
 * @param {Issuance} issuance
 */
export function remember(issuance) {
  if (find(issuance.key) === null) localStorage.setItem(PREFIX + issuance.key, JSON.stringify(issuance));
}

/**
 * Return the issuance that is kept under a key, or null.
 *
 * @param {string} key
 * @returns {Issuance | null}
 */
export function find(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key) ?? "null");
  } catch {
    return null;
  }
}

/** @param {string} key */
function forget(key) {
  localStorage.removeItem(PREFIX + key);
}

/**
 * Return this person's issuances in a project, oldest first, and remove all that are too old.
 *
 * @param {string} person
 * @param {string} project
 */
function list(person, project) {
  const keys = Object.keys(localStorage)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => name.slice(PREFIX.length));
  const kept = [];
  for (const key of keys) {
    const issuance = find(key);
    if (issuance === null || !(Date.now() - Date.parse(issuance.begun_at) < KEPT_MS)) forget(key);
    else if (issuance.person === person && issuance.project === project) kept.push(issuance);
  }
  return kept.sort((left, right) => left.begun_at.localeCompare(right.begun_at));
}

/**
 * Offer the issuances of a section's person and project.
 *
 * @param {HTMLElement} section
 */
function offer(section) {
  const kept = list(getData(section, "person"), getData(section, "project"));
  getElement(HTMLUListElement, "ul", section).replaceChildren(...kept.map((issuance) => makeItem(section, issuance)));
  section.hidden = kept.length === 0;
}

/**
 * @param {HTMLElement} section
 * @param {Issuance} issuance
 */
function makeItem(section, issuance) {
  const item = document.createElement("li");
  /** @type {{issuer: string, count: number}} */
  const requested = JSON.parse(issuance.body);
  const time = new Date(issuance.begun_at).toLocaleString(findLocale());
  const words =
    requested.count > 1
      ? getData(section, "batch").replace("{number}", String(requested.count))
      : getData(section, "single");
  item.append(`${words}, ${requested.issuer}, ${time} `, makeForm(section, issuance), makeDiscard(section, issuance));
  return item;
}

/**
 * @param {HTMLElement} section
 * @param {Issuance} issuance
 */
function makeForm(section, { key, route, body, begun_at }) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = getData(section, "action");
  form.className = "inline";
  const fields = { csrf_token: getData(section, "token"), idempotency_key: key, route, body, begun_at };
  for (const [name, value] of Object.entries(fields)) form.append(makeHidden(name, value));
  const button = document.createElement("button");
  button.textContent = getData(section, "ask");
  form.append(button);
  return form;
}

/**
 * @param {HTMLElement} section
 * @param {Issuance} issuance
 */
function makeDiscard(section, { key }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = getData(section, "discard");
  button.addEventListener("click", () => {
    forget(key);
    offer(section);
  });
  return button;
}

/**
 * Return a hidden field.
 *
 * @param {string} name
 * @param {string} value
 */
export function makeHidden(name, value) {
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = name;
  field.value = value;
  return field;
}

const answered = ANSWERED.exec(location.hash);
if (answered !== null) {
  forget(answered[1]);
  history.replaceState(null, "", location.pathname + location.search);
}
const section = document.getElementById("kept-requests");
if (section !== null) {
  if (section.dataset.settled) forget(section.dataset.settled);
  offer(section);
}
