// The fold in which a Code's place in the transparency log is looked up. What does that is loaded when it is opened.

import { getElement } from "../elements.js";

const section = getElement(HTMLElement, "#log-place");

async function look() {
  try {
    const { Place } = await import("./log_place.js");
    await new Place(section).show();
  } catch (error) {
    getElement(HTMLElement, '[data-says="looking"]', section).hidden = true;
    getElement(HTMLElement, '[data-says="unchecked"]', section).hidden = false;
    throw error;
  }
}

getElement(HTMLDetailsElement, "details", section).addEventListener("toggle", look, { once: true });
