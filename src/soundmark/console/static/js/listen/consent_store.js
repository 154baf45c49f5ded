// The person's consent and the secret of their device, in IndexedDB: it keeps a key that no script can read.

import { useStore } from "./database.js";

const STORE = "consent";
const KEY = "given";

/** @typedef {{deviceSecret: CryptoKey, givenAt: Date, publisherUrl: string}} Given */

/**
 * Return what was given, or null if the person has not agreed.
 *
 * @returns {Promise<Given | null>}
 */
export async function readRecord() {
  return (await use("readonly", (store) => store.get(KEY))) ?? null;
}

/** @param {Given} record */
export function writeRecord(record) {
  return use("readwrite", (store) => store.put(record, KEY));
}

/** Forget the consent, and with the secret all that could link the tokens of this device. */
export function deleteRecord() {
  return use("readwrite", (store) => store.delete(KEY));
}

/**
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} act
 */
function use(mode, act) {
  return useStore("soundmark-listen", STORE, mode, act);
}
