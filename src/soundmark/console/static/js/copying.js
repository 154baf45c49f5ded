// Copy buttons beside values that are shown once, and beside ids.

import { getData } from "./elements.js";

/**
 * Add a button to every field that is marked with `data-copy`, and to every element marked with `data-copy-value`. Its
 * value is copied, or the element's text if it has none.
 *
 * @param {ParentNode} root
 */
export function addCopyButtons(root) {
  const [copy, copied] = [getData(document.body, "copyWord"), getData(document.body, "copiedWord")];
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = root.querySelectorAll("input[data-copy]");
  for (const field of fields) {
    const button = makeButton("second", () => field.value);
    button.textContent = copy;
    button.addEventListener("copied", () => {
      button.textContent = copied;
    });
    field.after(button);
  }
  /** @type {NodeListOf<HTMLElement>} */
  const values = root.querySelectorAll("[data-copy-value]");
  for (const element of values) {
    const value = element.dataset.copyValue || (element.textContent ?? "");
    const button = makeButton("quiet copy", () => value);
    show(button, "copy", `${copy} ${value}`);
    button.addEventListener("copied", () => show(button, "check", copied));
    // Where the element names a control, its text alone goes on to do so.
    if (element.id) {
      const text = document.createElement("span");
      text.append(...element.childNodes);
      text.id = element.id;
      element.removeAttribute("id");
      element.append(text);
    }
    element.append(button);
  }
}

/**
 * Return a button that copies what `read` returns, and then says so by the event `copied`.
 *
 * @param {string} className
 * @param {() => string} read
 */
function makeButton(className, read) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = className;
  button.addEventListener("click", async () => {
    if (await copyText(read(), button)) button.dispatchEvent(new Event("copied"));
  });
  return button;
}

/**
 * Copy a text, and return whether that worked.
 *
 * @param {string} text
 * @param {HTMLElement} button beside which the text may stand for a moment, since a dialog keeps the focus inside
 */
async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain http browsers have no such API, but copy what is selected.
    const field = document.createElement("textarea");
    field.value = text;
    button.after(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    button.focus();
    return isCopied;
  }
}

/**
 * Show an icon of the sprite on a button, and give it a name.
 *
 * @param {HTMLButtonElement} button
 * @param {string} icon
 * @param {string} name
 */
function show(button, icon, name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.classList.add("icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${document.body.dataset.icons}#${icon}`);
  svg.append(use);
  button.replaceChildren(svg);
  button.setAttribute("aria-label", name);
  button.title = name;
}
