// The offline packs of the page: chosen as files, verified, kept on this device, and given to the receiver.

import { readKeyHistory, ReceiverFailure, verifyOfflinePack } from "/static/receiver/index.js";

import { getElement, takeFiles } from "../elements.js";
import { findLocale } from "../local_times.js";
import { copyTemplate, describe, fill, say } from "./words.js";
import { deleteAll, deletePack, keepKeys, keepPack, readKept } from "./pack_store.js";

const PACK_BYTES_MAX = 32 * 1024 * 1024;

/** @import { Receiver } from "/static/receiver/index.js" */
/** @import { OfflinePack, OfflineResolution } from "/static/receiver/verifying/offline_pack.js" */

export class Packs {
  /** @param {HTMLElement} section @param {Receiver} receiver */
  constructor(section, receiver) {
    this._receiver = receiver;
    this._input = getElement(HTMLInputElement, "#pack", section);
    this._forget = getElement(HTMLButtonElement, "#forget-packs", section);
    this._list = getElement(HTMLElement, "#packs", section);
    this._progress = getElement(HTMLElement, "#pack-progress", section);
    /** @type {Uint8Array<ArrayBuffer> | null} */
    this._keptKeys = null;
  }

  /** Give the kept packs to the receiver, and let the person add others. */
  async open() {
    await this._readKept().catch(() => say(this._progress, "pack", "not_stored"));
    this._show();
    takeFiles(this._input, (files) => this._add(files));
    this._forget.addEventListener("click", () => this._forgetAll());
    this._input.disabled = false;
    // Not awaited: without a network it may take a while, and then the kept keys do.
    if (this._receiver.packs.length > 0) this._fetchKeys().catch(() => null);
  }

  async _readKept() {
    const { keys, packs } = await readKept();
    this._keptKeys = keys;
    for (const [packId, document] of packs) {
      const pack = await this._verify(document, keys);
      if (pack === null) await deletePack(packId);
      else this._receiver.addPack(pack);
    }
    await this._deleteForgotten([...packs.keys()]);
  }

  /**
   * Delete what the receiver has forgotten, because it can neither answer nor silence, or is the oldest of too many.
   *
   * @param {string[]} packIds those that are kept
   */
  async _deleteForgotten(packIds) {
    const known = new Set(this._receiver.packs.map((pack) => pack.packId));
    for (const packId of packIds) if (!known.has(packId)) await deletePack(packId);
  }

  /**
   * Add each of the files, and say of each what became of it.
   *
   * @param {File[]} files
   */
  async _add(files) {
    say(this._progress, "pack", "reading");
    const lines = [];
    for (const file of files) {
      const [outcome, pack] = await this._addFile(file);
      const line = copyTemplate("pack_outcome");
      fill(line, "file", file.name);
      fill(line, "outcome", describe("pack", outcome, pack === null ? {} : describePack(pack)));
      lines.push(line);
      this._progress.dataset.state = outcome;
    }
    this._progress.replaceChildren(...lines);
    // So that the same file can be chosen again.
    this._input.value = "";
    this._show();
  }

  /**
   * Return the name of the outcome, and the pack if it was added.
   *
   * @param {File} file
   * @returns {Promise<[string, OfflinePack | null]>}
   */
  async _addFile(file) {
    if (file.size > PACK_BYTES_MAX) return ["too_large", null];
    const content = await file.arrayBuffer().catch(() => null);
    if (content === null) return ["unreadable", null];
    const document = new Uint8Array(content);
    const keys = await this._fetchKeys().catch(() => this._keptKeys);
    if (keys === null) return ["keys_missing", null];
    const pack = await this._verify(document, keys);
    if (pack === null) return ["not_genuine", null];
    const formerIds = this._receiver.packs.map(({ packId }) => packId);
    this._receiver.addPack(pack);
    if (!this._receiver.packs.includes(pack) && !formerIds.includes(pack.packId)) return ["not_needed", null];
    try {
      await keepPack(pack.packId, document);
      await keepKeys(keys);
      await this._deleteForgotten(formerIds);
    } catch {
      return ["not_stored", pack];
    }
    return [pack.validUntil <= Date.now() ? "ended" : "added", pack];
  }

  /**
   * Return the service's key history, and keep it: with it, packs are verified when there is no network.
   *
   * @throws {ReceiverFailure}
   */
  async _fetchKeys() {
    const history = await this._receiver.fetchKeyHistory();
    this._keptKeys = history;
    if (this._receiver.packs.length > 0) await keepKeys(history).catch(() => null);
    return history;
  }

  /**
   * Return the pack, or null if it is not genuine.
   *
   * @param {Uint8Array} document
   * @param {Uint8Array | null} keys
   */
  async _verify(document, keys) {
    try {
      return await verifyOfflinePack(document, await readKeyHistory(keys ?? new Uint8Array()));
    } catch (failure) {
      if (!(failure instanceof ReceiverFailure)) throw failure;
      return null;
    }
  }

  async _forgetAll() {
    this._receiver.forgetPacks();
    await deleteAll().then(
      () => say(this._progress, "pack", "forgotten"),
      () => say(this._progress, "pack", "not_deleted"),
    );
    this._show();
  }

  _show() {
    const items = this._receiver.packs.map((pack) => {
      const item = document.createElement("li");
      item.textContent = describe("pack", "kept", describePack(pack));
      return item;
    });
    this._list.replaceChildren(...items);
    const hadFocus = document.activeElement === this._forget;
    this._forget.hidden = items.length === 0;
    if (hadFocus && this._forget.hidden) this._input.focus();
  }
}

/** @param {OfflinePack} pack */
function describePack(pack) {
  return {
    count: pack.codesCount,
    as_of: writeTime(new Date(pack.issuedAt)),
    until: writeTime(new Date(pack.validUntil)),
  };
}

/**
 * Return the words that say that an answer is from a pack, and as of when. They stand in the place of "Verified".
 *
 * @param {OfflineResolution} answer
 */
export function describeOffline(answer) {
  const shown = copyTemplate("offline");
  fill(shown, "as_of", writeTime(answer.asOf));
  return shown;
}

/**
 * Return a date and a time as the page's language writes them.
 *
 * @param {Date} time
 */
export function writeTime(time) {
  return time.toLocaleString(findLocale(), { dateStyle: "medium", timeStyle: "medium" });
}
