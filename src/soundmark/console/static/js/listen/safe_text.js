// Text of strangers: what it holds is what a person sees.

// Controls, marks that turn the direction of writing, and characters without a glyph, or with an empty one.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2800]/gu;
// Hardly any writing puts more marks on one letter, and a pile of them would cover the words around it.
const PILE = /\p{M}{5,}/gu;

/**
 * Return a text in which each invisible character, and each mark of a pile, is written out, such as `[U+202E]`.
 *
 * @param {string} text
 */
export function makeVisible(text) {
  return text.replace(INVISIBLE, spell).replace(PILE, (pile) => Array.from(pile, spell).join(""));
}

/** @param {string} character */
function spell(character) {
  const point = /** @type {number} */ (character.codePointAt(0));
  return `[U+${point.toString(16).toUpperCase().padStart(4, "0")}]`;
}

// A host as DNS has it. Browsers differ in what else they take for one, such as a space.
const HOST = /^(?:[a-z0-9_-]+\.)*[a-z0-9_-]+\.?$|^\[[0-9a-f:.]+\]$/;

/**
 * Return the URL of a text that may be offered as a link: https, without a user name that looks like a host.
 *
 * @param {string} text
 * @returns {URL | null}
 */
export function readLink(text) {
  if (!/^https:\/\//i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  return url.protocol === "https:" && url.username + url.password === "" && HOST.test(url.hostname) ? url : null;
}

/**
 * Return whether a text claims to be an address of some kind, so that a person may wonder why it is no link.
 *
 * @param {string} text
 */
export function looksLikeAddress(text) {
  return /^[a-z][a-z0-9+.-]*:\S/i.test(text.trim());
}
