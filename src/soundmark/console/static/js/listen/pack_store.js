// The offline packs that are kept on this device, and the keys that verify them, in IndexedDB. None of it is secret.

import { useStore } from "./database.js";

// Under which the key history is kept, beside the packs under their ids.
const KEYS = "keys";

/**
 * Return the key history that was kept, and the packs by their ids.
 *
 * @returns {Promise<{keys: Uint8Array<ArrayBuffer> | null, packs: Map<string, Uint8Array<ArrayBuffer>>}>}
 */
export async function readKept() {
  const names = await use("readonly", (store) => store.getAllKeys());
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const values = await use("readonly", (store) => store.getAll());
  const packs = new Map(names.map((name, place) => [String(name), values[place]]));
  const keys = packs.get(KEYS) ?? null;
  packs.delete(KEYS);
  return { keys, packs };
}

/** @param {Uint8Array<ArrayBuffer>} history */
export function keepKeys(history) {
  return use("readwrite", (store) => store.put(history, KEYS));
}

/** @param {string} packId @param {Uint8Array<ArrayBuffer>} document */
export function keepPack(packId, document) {
  return use("readwrite", (store) => store.put(document, packId));
}

/** @param {string} packId */
export function deletePack(packId) {
  return use("readwrite", (store) => store.delete(packId));
}

/** Delete everything that was kept. */
export function deleteAll() {
  return use("readwrite", (store) => store.clear());
}

/**
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} act
 */
function use(mode, act) {
  return useStore("soundmark-packs", "kept", mode, act);
}
