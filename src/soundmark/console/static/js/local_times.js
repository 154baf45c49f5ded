// Moments in the time zone of the device: the server writes and reads UTC.

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";

/** Show every moment of a page in local time, and let moments be typed in it. The exact UTC time stays as a title. */
export function showLocalTimes(root) {
  const { lang } = document.documentElement;
  // The page's language as this browser's country writes it.
  const locale = navigator.languages.find((each) => each.split("-")[0] === lang) ?? lang;
  const format = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });
  for (const element of root.querySelectorAll("time[datetime]")) {
    element.title = element.textContent;
    element.textContent = format.format(new Date(element.dateTime));
  }
  for (const input of root.querySelectorAll("input[data-local-time]")) {
    const zone = input.form.elements.namedItem(`${input.name}_zone`);
    // A value that the server filled in is in UTC until a person's own zone is noted beside it.
    if (zone.value === "") translate(input, input.form.elements.namedItem(`${input.name}_shown`));
    zone.value = ZONE;
    input.parentElement.querySelector(".zone").textContent = ZONE;
  }
}

/** Write the time of an input, and the one that it was shown with, in local time. A year before 1 leaves both empty. */
function translate(input, shown) {
  const isUnchanged = shown?.value === input.value;
  if (input.value !== "") input.value = toLocal(new Date(`${input.value}Z`));
  if (isUnchanged) shown.value = input.value;
  else if (shown?.value) shown.value = toLocal(new Date(`${shown.value}Z`));
}

/** Return a moment as an input shows it: the seconds and milliseconds stay where it has any. */
function toLocal(moment) {
  const shifted = new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000);
  return shifted
    .toISOString()
    .slice(0, -1)
    .replace(/(:00)?\.000$/, "");
}
