// The person's consent and the secret of their device, in IndexedDB: it keeps a key that no script can read.

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
 * @returns {Promise<T>}
 */
async function use(mode, act) {
  /** @type {IDBDatabase} */
  const database = await new Promise((resolve, reject) => {
    const opening = indexedDB.open("soundmark-listen", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}
