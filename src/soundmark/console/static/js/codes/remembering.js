// Issuances whose answer is not known yet. Each is kept here for at most 23 hours, and no credential is among them.

const PREFIX = "soundmark.issuance.";
const KEPT_MS = 23 * 3600 * 1000;
const ANSWERED = /^#answered=([A-Za-z0-9._~-]{16,128})$/;

/**
 * Keep an issuance under its idempotency key; one that is kept already stays as it is, because it may have taken place.
 *
 * @param {{key: string, route: string, body: string, begun_at: string, person: string, project: string}} issuance
 */
export function remember(issuance) {
  if (find(issuance.key) === null) localStorage.setItem(PREFIX + issuance.key, JSON.stringify(issuance));
}

/** Return the issuance that is kept under a key, or null. */
export function find(key) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + key));
  } catch {
    return null;
  }
}

function forget(key) {
  localStorage.removeItem(PREFIX + key);
}

/** Return this person's issuances in a project, oldest first, and remove all that are too old. */
function list(person, project) {
  const keys = Object.keys(localStorage)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => name.slice(PREFIX.length));
  const kept = [];
  for (const key of keys) {
    const issuance = find(key);
    const age = Date.now() - Date.parse(issuance?.begun_at);
    if (!(age < KEPT_MS)) forget(key);
    else if (issuance.person === person && issuance.project === project) kept.push(issuance);
  }
  return kept.sort((left, right) => left.begun_at.localeCompare(right.begun_at));
}

/** Offer the issuances of a section's person and project. */
function offer(section) {
  const { person, project } = section.dataset;
  const kept = list(person, project);
  section.querySelector("ul").replaceChildren(...kept.map((issuance) => makeItem(section, issuance)));
  section.hidden = kept.length === 0;
}

function makeItem(section, issuance) {
  const item = document.createElement("li");
  const requested = JSON.parse(issuance.body);
  const time = new Date(issuance.begun_at).toLocaleString(document.documentElement.lang);
  const words =
    requested.count > 1 ? section.dataset.batch.replace("{number}", requested.count) : section.dataset.single;
  item.append(`${words}, ${requested.issuer}, ${time} `, makeForm(section, issuance), makeDiscard(section, issuance));
  return item;
}

function makeForm(section, { key, route, body, begun_at }) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = section.dataset.action;
  form.className = "inline";
  const fields = { csrf_token: section.dataset.token, idempotency_key: key, route, body, begun_at };
  for (const [name, value] of Object.entries(fields)) form.append(makeHidden(name, value));
  const button = document.createElement("button");
  button.textContent = section.dataset.ask;
  form.append(button);
  return form;
}

function makeDiscard(section, { key }) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet";
  button.textContent = section.dataset.discard;
  button.addEventListener("click", () => {
    forget(key);
    offer(section);
  });
  return button;
}

/** Return a hidden field. */
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
