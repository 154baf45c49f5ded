// What the templates write into a page for its scripts.

/**
 * Return the first element that a selector finds.
 *
 * @template {Element} T
 * @param {{new (): T}} type
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {T}
 * @throws {TypeError} if there is none, or it is one of another type
 */
export function getElement(type, selector, root = document) {
  const element = root.querySelector(selector);
  if (!(element instanceof type)) throw new TypeError(`The page lacks its ${selector}.`);
  return element;
}

/**
 * Return the value of a `data-` attribute.
 *
 * @param {HTMLElement} element
 * @param {string} name as in `dataset`
 * @throws {TypeError} if the element lacks it
 */
export function getData(element, name) {
  const value = element.dataset[name];
  if (value === undefined) throw new TypeError(`The page lacks its ${name}.`);
  return value;
}

/**
 * Call a function with the files that a person chooses.
 *
 * A browser reports a choice only if it differs from the last one, which is therefore forgotten.
 *
 * @param {HTMLInputElement} input
 * @param {(files: File[]) => unknown} act
 */
export function takeFiles(input, act) {
  input.addEventListener("click", () => (input.value = ""));
  input.addEventListener("change", () => act([...(input.files ?? [])]));
}
