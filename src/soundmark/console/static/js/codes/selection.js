// The selection of Codes, which lasts from page to page of the list and is limited.

import { getData, getElement } from "../elements.js";

/** @param {HTMLFormElement} form */
function start(form) {
  const status = getElement(HTMLElement, "#selected");
  const { project, max } = form.dataset;
  const place = `soundmark.selection.${project}`;
  if (location.hash === "#revoked") {
    sessionStorage.removeItem(place);
    // Loaded again, the page keeps what is selected from now on.
    history.replaceState(null, "", location.pathname + location.search);
  }
  /** @type {Set<string>} */
  const chosen = new Set(JSON.parse(sessionStorage.getItem(place) ?? "[]"));
  /** @type {NodeListOf<HTMLInputElement>} */
  const found = form.querySelectorAll('input[name="xr_ids"]');
  const boxes = [...found];

  /** @type {HTMLInputElement} */
  const every = document.createElement("input");
  every.type = "checkbox";
  every.setAttribute("aria-label", getData(form, "every"));

  /** @param {string | void} [refusal] */
  function show(refusal) {
    for (const box of boxes) box.checked = chosen.has(box.value);
    const here = boxes.filter((box) => box.checked).length;
    every.checked = here === boxes.length;
    every.indeterminate = 0 < here && here < boxes.length;
    sessionStorage.setItem(place, JSON.stringify([...chosen]));
    status.textContent = refusal ?? getData(form, "chosen").replace("{number}", String(chosen.size));
    // The style sheet shows what can be done with a selection.
    form.toggleAttribute("data-selected", chosen.size > 0);
  }

  /** @param {HTMLInputElement} box */
  function choose(box) {
    if (chosen.size >= Number(max)) return false;
    chosen.add(box.value);
    return true;
  }

  for (const box of boxes) {
    box.addEventListener("change", () => {
      if (!box.checked) chosen.delete(box.value);
      else if (!choose(box)) return show(form.dataset.tooMany);
      show();
    });
  }
  form.addEventListener("submit", (event) => {
    for (const hidden of form.querySelectorAll('input[type="hidden"]')) hidden.remove();
    if (chosen.size === 0) event.preventDefault();
    const here = new Set(boxes.map((box) => box.value));
    for (const xrId of chosen) if (!here.has(xrId)) form.append(makeHidden(xrId));
  });
  every.addEventListener("change", () => {
    if (every.checked)
      return show(boxes.every((box) => chosen.has(box.value) || choose(box)) ? undefined : form.dataset.tooMany);
    for (const box of boxes) chosen.delete(box.value);
    show();
  });
  getElement(HTMLElement, "#every", form).append(every);
  getElement(HTMLElement, ".bulk", form).append(makeButton(getData(form, "clear"), () => show(chosen.clear())));
  show();
}

/** @param {string} xrId */
function makeHidden(xrId) {
  const field = document.createElement("input");
  field.type = "hidden";
  field.name = "xr_ids";
  field.value = xrId;
  return field;
}

/**
 * @param {string} text
 * @param {() => void} act
 */
function makeButton(text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = text;
  button.addEventListener("click", act);
  return button;
}

const form = document.querySelector("form#selection");
if (form instanceof HTMLFormElement) start(form);
