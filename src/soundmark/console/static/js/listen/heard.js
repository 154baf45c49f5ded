// What was heard: each token once, resolved and verified here, or why there is nothing to show.

import { OfflineResolution } from "/static/receiver/index.js";

import { addCopyButtons } from "../copying.js";
import { getElement } from "../elements.js";
import { offerReport } from "./abuse.js";
import { copyTemplate, fill, fillState } from "./words.js";
import { writeResource } from "./intent.js";
import { describeOffline, writeTime } from "./packs.js";
import { makeVisible } from "./safe_text.js";

const SHOWN_MAX = 20;
// A recording may hold hundreds of Codes.
const RESOLVING_MAX = 3;
const CHECK_PAST_EVERY_MS = 1000;
// An answer may end before it arrives, where the clock is fast but within its tolerance.
const VALID_MIN_MS = 30_000;
// What is asked for again when the Code is heard again, and the service's pause is over.
const NOT_LASTING = ["past", "network", "temporarilyUnavailable", "rateLimited"];
// As long as a fresh answer: by then the service may be there again.
const OFFLINE_SHOWN_MS = 120_000;

/**
 * @import { Receiver, ReceiverFailure } from "/static/receiver/index.js"
 * @import { Intent } from "/static/receiver/verifying/shapes.js"
 * @import { Consent } from "./consent.js"
 */

/** @typedef {object} Shown @property {string} token @property {HTMLElement} article @property {number} endsAtMs @property {number} dueAtMs when it may be asked for again @property {string} source the file, or "" @property {HTMLElement} [report] the form of a report, which keeps what was typed */

export class Heard {
  /**
   * @param {Element} list
   * @param {Receiver} receiver
   * @param {Consent} consent
   * @param {HTMLElement} [before] the fold for what was heard before the newest file
   */
  constructor(list, receiver, consent, before = document.createElement("details")) {
    this._list = list;
    this._before = before;
    this._receiver = receiver;
    this._consent = consent;
    /** @type {Map<string, Shown>} by token, the oldest first */
    this._shown = new Map();
    /** @type {Shown[]} */
    this._waiting = [];
    this._resolvingCount = 0;
    setInterval(() => this._markPast(), CHECK_PAST_EVERY_MS);
  }

  /**
   * Resolve a token that was heard, unless its answer is on its way or on the page and lasts.
   *
   * @param {string} token
   * @param {string} [source] the name of the file in which it was heard
   */
  add(token, source = "") {
    const known = this._shown.get(token);
    if (known !== undefined) {
      // Somebody who writes a report checks again when they have finished.
      if (known.article.querySelector("form")?.contains(document.activeElement)) return;
      const isDue = NOT_LASTING.includes(known.article.dataset.outcome ?? "") && Date.now() >= known.dueAtMs;
      if (isDue || !this._list.contains(known.article)) this._bringBack(known);
      if (isDue) this._enqueue(known);
      return;
    }
    getElement(HTMLElement, "#nothing").hidden = true;
    const article = document.createElement("article");
    article.className = "heard";
    article.tabIndex = -1;
    const shown = { token, article, endsAtMs: Infinity, dueAtMs: 0, source };
    this._shown.set(token, shown);
    this._list.prepend(article);
    if (this._shown.size > SHOWN_MAX) {
      const [oldest] = this._shown.values();
      this._shown.delete(oldest.token);
      oldest.article.remove();
      this._before.hidden = !this._before.querySelector("article");
    }
    this._enqueue(shown);
  }

  /** Fold away what was heard so far, above what was folded before. */
  setAside() {
    const newest = this._before.querySelector("article");
    for (const article of [...this._list.children]) this._before.insertBefore(article, newest);
    this._before.hidden = !this._before.querySelector("article");
  }

  /** Put what was heard again on top. @param {Shown} shown */
  _bringBack(shown) {
    const hadFocus = shown.article.contains(document.activeElement);
    this._list.prepend(shown.article);
    if (hadFocus) shown.article.focus();
    this._shown.delete(shown.token);
    this._shown.set(shown.token, shown);
    this._before.hidden = !this._before.querySelector("article");
    this._bringIntoView(shown);
  }

  /** @param {Shown} shown */
  _enqueue(shown) {
    shown.endsAtMs = Infinity;
    replace(shown, "resolving", copyTemplate("resolving"));
    this._waiting.push(shown);
    this._work();
  }

  /** Resolve what waits, beside at most two others that do the same. */
  async _work() {
    if (this._resolvingCount === RESOLVING_MAX) return;
    this._resolvingCount += 1;
    // Begins when the caller has added everything, because what has left the page by then is not resolved.
    await null;
    for (let next = this._waiting.shift(); next !== undefined; next = this._waiting.shift()) {
      // Anything but a `ReceiverFailure` is our own mistake, and goes to the console.
      if (next.article.isConnected) await this._resolve(next).catch(reportError);
      this._bringIntoView(next);
    }
    this._resolvingCount -= 1;
  }

  /** @param {Shown} shown */
  async _resolve(shown) {
    const { token, article } = shown;
    try {
      const resolution = await this._receiver.resolve(token);
      if (!article.isConnected) return;
      if (resolution instanceof OfflineResolution) {
        showOffline(shown, resolution);
        return;
      }
      const facts = show(resolution);
      const report = getElement(HTMLElement, '[data-slot="report"]', facts);
      if (shown.report === undefined) offerReport(report, this._receiver, token);
      else report.replaceWith(shown.report);
      shown.report ??= report;
      replace(shown, "verified", facts);
      shown.endsAtMs = Math.max(resolution.expiresAt.getTime(), Date.now() + VALID_MIN_MS);
      makeScrollable(getElement(HTMLElement, '[data-slot="resource"]', article));
      // Not awaited, because a slow publisher must not keep the next Code from being resolved.
      this._consent.report(resolution, getElement(HTMLElement, '[data-slot="measured"]', article));
    } catch (error) {
      const failure = /** @type {ReceiverFailure} */ (error);
      if (failure.name !== "ReceiverFailure") throw error;
      shown.dueAtMs = Date.now() + 1000 * (failure.retryAfterS ?? 0);
      replace(shown, failure.reason, ...fillState(failure.reason), this._offer("again", shown));
    }
  }

  /** Show the newest result, unless somebody is at work in one. @param {Shown} shown */
  _bringIntoView({ article }) {
    if (article !== this._list.firstElementChild || this._list.contains(document.activeElement)) return;
    article.scrollIntoView({ block: "nearest" });
  }

  /** Mark the answers that are past, and take their links away: the Codes may have been revoked since. */
  _markPast() {
    for (const shown of this._shown.values()) {
      const { article } = shown;
      if (Date.now() < shown.endsAtMs) continue;
      shown.endsAtMs = Infinity;
      const hadFocus = article.contains(document.activeElement);
      for (const opener of article.querySelectorAll(".opener")) opener.remove();
      getElement(HTMLElement, "h3 + p", article).remove();
      getElement(HTMLElement, "h3", article).replaceWith(...fillState("past"));
      article.append(this._offer("check_again", shown));
      article.dataset.outcome = "past";
      if (hadFocus) article.focus();
    }
  }

  /**
   * @param {string} template
   * @param {Shown} shown
   */
  _offer(template, shown) {
    const offer = copyTemplate(template);
    getElement(HTMLButtonElement, "button", offer).addEventListener("click", () => this._enqueue(shown));
    return offer;
  }
}

/**
 * Replace what an article shows above the name of its file, and leave the focus on it.
 *
 * @param {Shown} shown
 * @param {string} outcome
 * @param {...Node} nodes
 */
function replace({ article, source }, outcome, ...nodes) {
  const hadFocus = article.contains(document.activeElement);
  article.replaceChildren(...nodes, ...(source ? [writeSource(source)] : []));
  article.dataset.outcome = outcome;
  if (hadFocus) article.focus();
}

/** @param {string} source */
function writeSource(source) {
  const shown = copyTemplate("source");
  fill(shown, "name", source);
  return shown;
}

/**
 * Let the keyboard scroll a place that holds more than it shows.
 *
 * @param {HTMLElement} element
 */
function makeScrollable(element) {
  if (element.scrollHeight > element.clientHeight) element.tabIndex = 0;
}

/**
 * Show an answer from a pack: nothing of it is verified now or measured, and a report would not arrive.
 *
 * @param {Shown} shown
 * @param {OfflineResolution} answer
 */
function showOffline(shown, answer) {
  const facts = show({ ...answer, expiresAt: answer.validUntil });
  for (const slot of ["measured", "report"]) getElement(HTMLElement, `[data-slot="${slot}"]`, facts).remove();
  getElement(HTMLElement, "h3 + p", facts).remove();
  getElement(HTMLElement, "h3", facts).replaceWith(describeOffline(answer));
  replace(shown, "offline", facts);
  shown.endsAtMs = Math.min(answer.validUntil.getTime(), Date.now() + OFFLINE_SHOWN_MS);
  makeScrollable(getElement(HTMLElement, '[data-slot="resource"]', shown.article));
}

/** @param {{intent: Intent, xrId: string, expiresAt: Date}} answer */
function show({ intent, xrId, expiresAt }) {
  const shown = copyTemplate("verified");
  fill(shown, "type", makeVisible(intent.type));
  fill(shown, "action", makeVisible(intent.action));
  fill(shown, "id_begin", xrId.slice(0, 8));
  fill(shown, "id_middle", xrId.slice(8, -4));
  fill(shown, "id_end", xrId.slice(8).slice(-4));
  addCopyButtons(shown);
  const until = getElement(HTMLTimeElement, '[data-slot="until"]', shown);
  until.dateTime = expiresAt.toISOString();
  until.textContent = writeTime(expiresAt);
  getElement(HTMLElement, '[data-slot="resource"]', shown).append(writeResource(intent.resource));
  return shown;
}
