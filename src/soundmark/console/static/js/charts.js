// Charts: the values of a column below the pointer, and days that are chosen by dragging.

import { getData, getElement } from "./elements.js";
import { findLocale } from "./local_times.js";

const numbers = new Intl.NumberFormat(findLocale());
const days = new Intl.DateTimeFormat(findLocale(), { dateStyle: "medium", timeZone: "UTC" });

/** @typedef {[text: string | number, ...values: number[]]} Column */

/** @param {HTMLElement} figure */
function start(figure) {
  const svg = getElement(SVGSVGElement, ":scope > svg", figure);
  const line = getElement(HTMLElement, ".values", figure);
  /** @type {Column[]} */
  const columns = JSON.parse(getData(figure, "columns"));
  const names = getData(figure, "names").split("|");
  const [left, right] = [Number(getData(figure, "left")), Number(getData(figure, "right"))];
  const marker = document.createElementNS(svg.namespaceURI, "rect");
  marker.setAttribute("class", "column");
  const { brush } = figure.dataset;
  /** @type {number | undefined} */
  let pressed;

  /** @param {PointerEvent} event */
  function find(event) {
    const { x, width } = svg.getBoundingClientRect();
    const place = ((event.clientX - x) / width) * svg.viewBox.baseVal.width;
    const number = Math.floor(((place - left) / (right - left)) * columns.length);
    return Math.min(Math.max(number, 0), columns.length - 1);
  }

  /**
   * @param {number} first
   * @param {number} last
   */
  function mark(first, last) {
    const room = (right - left) / columns.length;
    const box = { x: left + first * room, y: 0, width: (last - first + 1) * room, height: svg.viewBox.baseVal.height };
    for (const [name, value] of Object.entries(box)) marker.setAttribute(name, String(value));
    svg.append(marker);
    line.textContent =
      first === last ? describe(columns[first], names) : `${name(columns[first])} – ${name(columns[last])}`;
  }

  svg.addEventListener("pointermove", (event) => {
    const number = find(event);
    const start = pressed ?? number;
    mark(Math.min(start, number), Math.max(start, number));
  });
  svg.addEventListener("pointerleave", () => {
    if (pressed !== undefined) return;
    marker.remove();
    line.textContent = brush ?? "";
  });
  line.textContent = brush ?? "";
  if (brush === undefined) return;
  svg.addEventListener("pointerdown", (event) => {
    // A finger that drags scrolls the page.
    if (event.pointerType === "touch" || event.button !== 0) return;
    event.preventDefault();
    svg.setPointerCapture(event.pointerId);
    pressed = find(event);
  });
  svg.addEventListener("pointercancel", () => {
    pressed = undefined;
  });
  svg.addEventListener("pointerup", (event) => {
    if (pressed === undefined) return;
    const ends = [pressed, find(event)].sort((one, other) => one - other);
    pressed = undefined;
    choose(String(columns[ends[0]][0]), String(columns[ends[1]][0]));
  });
}

/** @param {Column} column */
function name([text]) {
  return typeof text === "string" && /^\d{4}-\d\d-\d\d$/.test(text) ? days.format(new Date(text)) : String(text);
}

/**
 * @param {Column} column
 * @param {string[]} names of the series
 */
function describe(column, names) {
  const [, ...values] = column;
  return `${name(column)} · ${values.map((value, number) => `${names[number]} ${numbers.format(value)}`).join(" · ")}`;
}

/**
 * Show the page for these days, with its other filters.
 *
 * @param {string} first
 * @param {string} last
 */
function choose(first, last) {
  const url = new URL(location.href);
  url.searchParams.set("from", first);
  url.searchParams.set("to", last);
  url.searchParams.delete("all");
  location.assign(url);
}

/** @type {NodeListOf<HTMLElement>} */
const figures = document.querySelectorAll("figure.chart[data-columns]");
for (const figure of figures) start(figure);
