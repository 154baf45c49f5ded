// The search among the types of events. Without this script, the list is whole.

import { getData, getElement } from "./elements.js";

const types = getElement(HTMLElement, "#field-event_types");
const search = getElement(HTMLElement, "#event-search", types);
const field = getElement(HTMLInputElement, "input", search);
const status = getElement(HTMLElement, "[role=status]", search);
/** @type {NodeListOf<HTMLElement>} */
const boxes = types.querySelectorAll(".event-group label");

/** Show the types whose name, type or group holds every word that was typed. What is hidden stays chosen. */
function show() {
  const words = field.value.toLowerCase().split(/\s+/);
  for (const box of boxes) {
    const text = (box.textContent + (box.parentElement?.querySelector("p")?.textContent ?? "")).toLowerCase();
    box.hidden = !words.every((word) => text.includes(word));
  }
  for (const group of types.querySelectorAll(".event-group")) {
    if (group instanceof HTMLElement) group.hidden = !group.querySelector("label:not([hidden])");
  }
  const shown = types.querySelectorAll("label:not([hidden]) > [name=event_types]").length;
  const chosen = types.querySelectorAll("[name=event_types]:checked").length;
  status.textContent = getData(search, "found")
    .replace("{shown}", String(shown))
    .replace("{all}", String(boxes.length))
    .replace("{chosen}", String(chosen));
}

field.addEventListener("input", show);
// Enter would send the whole form.
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") event.preventDefault();
});
types.addEventListener("change", show);
search.hidden = false;
// The browser may have kept what was typed before.
show();
