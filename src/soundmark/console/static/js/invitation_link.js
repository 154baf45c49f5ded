// The link of an invitation carries its token in the fragment: it goes into the form, and out of the address.

const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  document.getElementById("field-token").value = token;
  history.replaceState(null, "", location.pathname + location.search);
}
