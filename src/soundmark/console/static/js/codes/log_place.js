// The place of a Code in the transparency log, looked up and verified here; `log_fold.js` loads it.

import { commit } from "/static/receiver/verifying/commitments.js";
import { LogPolicy } from "/static/receiver/verifying/log_policy.js";
import { PROOF_BYTES_MAX, verifyLogProof } from "/static/receiver/verifying/log_proof.js";

import { getData, getElement } from "../elements.js";
import { findLocale } from "../local_times.js";

// An entry is in the log five seconds after the answer to what it states.
const LOOKS_MAX = 6;
const PAUSE_MS = 1000;
const LOG_BYTES_MAX = 64 * 1024;
const TIMEOUT_MS = 10_000;
const NOT_FOUND = 404;

/**
 * @import { Commitment } from "/static/receiver/verifying/commitments.js"
 * @import { VerifiedProof } from "/static/receiver/verifying/log_proof.js"
 * @typedef {object} Log what the service says about its log
 * @property {string[]} vkeys
 * @property {number} size
 * @property {string} integrated_at
 * @property {string} state
 * @property {{name: string, vkey: string}[]} witnesses
 */

/** The end of a check: the name of the paragraph that says it. */
class State extends Error {}

/**
 * Return the body of an answer of the log; null if there is nothing at that address.
 *
 * @param {string} url
 * @param {number} bytesMax
 * @throws {Error} for any other answer, and without one
 */
async function fetchBytes(url, bytesMax) {
  const response = await fetch(url, {
    cache: "no-store",
    credentials: "omit",
    redirect: "error",
    referrerPolicy: "no-referrer",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status === NOT_FOUND) return null;
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (!response.ok || bytes.length > bytesMax) throw new Error(`${response.status}`);
  return bytes;
}

/**
 * @param {string} url
 * @returns {Promise<Log>}
 */
async function fetchLog(url) {
  const bytes = await fetchBytes(url, LOG_BYTES_MAX);
  if (bytes === null) throw new State("unconfigured");
  return JSON.parse(new TextDecoder().decode(bytes));
}

/**
 * Find an entry and verify its proof under the keys that the page shows.
 *
 * @param {string} url
 * @param {Log} log
 * @param {Commitment} commitment
 * @param {Uint8Array} text
 */
async function findEntry(url, log, commitment, text) {
  const digest = await commit(commitment, text);
  const policy = await LogPolicy.read(log.vkeys, { witnesses: log.witnesses.map(({ vkey }) => vkey) });
  const proof = await fetchBytes(`${url}/proofs/${digest}`, PROOF_BYTES_MAX);
  return proof === null ? null : verifyLogProof(proof, policy, commitment, digest);
}

/** What is on the page. */
export class Place {
  /** @param {HTMLElement} section */
  constructor(section) {
    this._section = section;
    this._format = new Intl.DateTimeFormat(findLocale(), { dateStyle: "medium", timeStyle: "medium" });
  }

  /** Look until the log has the Code, and its revocation, if it must have them soon. */
  async show() {
    const isFresh = "fresh" in this._section.dataset;
    for (let looks = 1; ; looks += 1) {
      const state = await this._look().catch(nameState);
      this._say(state === "absent" && isFresh ? "waiting" : state);
      if (state !== "absent" || !isFresh || looks === LOOKS_MAX) return;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async _look() {
    const url = getData(this._section, "log");
    const log = await fetchLog(url);
    getElement(HTMLElement, "[data-fact=keys]", this._section).textContent = log.vkeys.join("\n");
    const text = new TextEncoder().encode(getElement(HTMLElement, "#signed-code").textContent);
    const issued = await findEntry(url, log, "code.issued/code", text);
    if (issued === null) throw new State(log.state === "integrating" ? "absent" : "stopped");
    this._note(issued, await this._findTime(url, log, issued));
    if (!("revoked" in this._section.dataset)) return "verified";
    const revoked = await findEntry(url, log, "code.revoked/code", text);
    if (revoked === null) throw new State(log.state === "integrating" ? "absent" : "stopped");
    getElement(HTMLElement, "[data-fact=revoked]", this._section).textContent = `${revoked.index}`;
    return "verified";
  }

  /**
   * Return when the checkpoint of a proof was made, as the service says; null if it says that of a later one alone.
   *
   * @param {string} url
   * @param {Log} log
   * @param {VerifiedProof} proof
   */
  async _findTime(url, log, proof) {
    const { size, integrated_at: time } = log.size === proof.size ? log : await fetchLog(url);
    return size === proof.size ? this._format.format(new Date(time)) : null;
  }

  /**
   * @param {VerifiedProof} proof
   * @param {string | null} time
   */
  _note(proof, time) {
    const signers = proof.witnesses.map(({ name, timeS }) => `${name}, ${this._format.format(new Date(timeS * 1000))}`);
    const facts = { index: `${proof.index}`, size: `${proof.size}`, time, witnesses: signers.join("\n") };
    for (const [name, value] of Object.entries(facts)) {
      const element = getElement(HTMLElement, `[data-fact=${name}]`, this._section);
      element.textContent = value || getData(element, "none");
    }
  }

  /** @param {string} state */
  _say(state) {
    this._section.dataset.state = state;
    for (const said of this._section.querySelectorAll("[data-says]")) {
      /** @type {HTMLElement} */ (said).hidden = /** @type {HTMLElement} */ (said).dataset.says !== state;
    }
    getElement(HTMLElement, "[data-facts]", this._section).hidden = state !== "verified";
  }
}

/**
 * Return what a failure says: the log contradicts itself or the Code, or nobody could look.
 *
 * @param {Error & {reason?: string}} failure
 */
function nameState(failure) {
  if (failure instanceof State) return failure.message;
  return failure.reason === "unverifiable" ? "contradicts" : "unchecked";
}
