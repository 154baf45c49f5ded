// The words of the page, which stand in its templates in the person's language.

/** Return the content of a template, to be filled in. */
export function copyTemplate(id) {
  return document.getElementById(id).content.cloneNode(true);
}

/** Return the words of a message, with its `[values]` filled in; numbers as the page's language writes them. */
export function describe(kind, name, values = {}) {
  const words = document.querySelector(`template[data-${kind}="${name}"]`).content.textContent;
  return words.replace(/\[(\w+)\]/g, (_, key) => write(values[key]));
}

/** Show a message in an element. */
export function say(element, kind, name, values) {
  element.textContent = describe(kind, name, values);
  element.dataset.state = name;
}

/** Return the heading and the explanation of a state. */
export function fillState(name) {
  return [...document.querySelector(`template[data-state="${name}"]`).content.cloneNode(true).childNodes];
}

/** Put a text into the slot of a filled template. */
export function fill(fragment, slot, text) {
  fragment.querySelector(`[data-slot="${slot}"]`).textContent = text;
}

function write(value) {
  return typeof value === "number" ? value.toLocaleString(document.documentElement.lang) : value;
}
