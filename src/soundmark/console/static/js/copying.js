// Copy buttons beside values that are shown once.

const WORDS = { en: ["Copy", "Copied"], fr: ["Copier", "Copié"] };

/**
 * Add a button to every field that is marked with `data-copy`.
 *
 * @param {Document} root
 */
export function addCopyButtons(root) {
  const [copy, copied] = WORDS[/** @type {keyof typeof WORDS} */ (document.documentElement.lang)] ?? WORDS.en;
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = root.querySelectorAll("input[data-copy]");
  for (const field of fields) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "second";
    button.textContent = copy;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(field.value);
      button.textContent = copied;
    });
    field.after(button);
  }
}
