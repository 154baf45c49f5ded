// Moments in the time zone of the device: the server writes and reads UTC.

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";

/** Return the page's language as this browser's country writes it: every time of a page has this form. */
export function findLocale() {
  const { lang } = document.documentElement;
  return navigator.languages.find((each) => each.split("-")[0] === lang) ?? lang;
}

/**
 * Show every moment of a page in local time, and let moments be typed in it. The exact UTC time stays as a title.
 *
 * @param {Document} root
 */
export function showLocalTimes(root) {
  const format = new Intl.DateTimeFormat(findLocale(), { dateStyle: "medium", timeStyle: "short" });
  const zoned = root.querySelector("[data-zone]");
  if (zoned instanceof HTMLElement) zoned.textContent = zoned.dataset.zone?.replace("{zone}", ZONE) ?? "";
  /** @type {NodeListOf<HTMLTimeElement>} */
  const moments = root.querySelectorAll("time[datetime]");
  for (const element of moments) {
    element.title = `${element.textContent} UTC`;
    element.textContent = format.format(new Date(element.dateTime));
  }
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = root.querySelectorAll("input[data-local-time]");
  for (const input of inputs) {
    const { elements } = /** @type {HTMLFormElement} */ (input.form);
    const zone = /** @type {HTMLInputElement} */ (elements.namedItem(`${input.name}_zone`));
    const shown = /** @type {HTMLInputElement | null} */ (elements.namedItem(`${input.name}_shown`));
    // A value that the server filled in is in UTC until a person's own zone is noted beside it.
    if (zone.value === "") translate(input, shown);
    zone.value = ZONE;
    const label = /** @type {HTMLElement} */ (input.parentElement?.querySelector(".zone"));
    label.textContent = ZONE;
  }
}

/**
 * Write the time of an input, and the one that it was shown with, in local time. A year before 1 leaves both empty.
 *
 * @param {HTMLInputElement} input
 * @param {HTMLInputElement | null} shown
 */
function translate(input, shown) {
  const isUnchanged = shown !== null && shown.value === input.value;
  if (input.value !== "") input.value = toLocal(new Date(`${input.value}Z`));
  if (isUnchanged) shown.value = input.value;
  else if (shown?.value) shown.value = toLocal(new Date(`${shown.value}Z`));
}

/**
 * Return a moment as an input shows it: the seconds and milliseconds stay where it has any.
 *
 * @param {Date} moment
 */
function toLocal(moment) {
  const shifted = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return shifted
    .toISOString()
    .slice(0, -1)
    .replace(/(:00)?\.000$/, "");
}
