// The link of an invitation carries its token in the fragment: it goes into the form, and out of the address.

import { getElement } from "./elements.js";

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  getElement(HTMLInputElement, "#field-token").value = token;
  history.replaceState(null, "", location.pathname + location.search);
}
