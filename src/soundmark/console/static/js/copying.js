// Copy buttons beside values that are shown once.

const WORDS = { en: ["Copy", "Copied"], fr: ["Copier", "Copié"] };

/** Add a button to every field that is marked with `data-copy`. */
export function addCopyButtons(root) {
  const [copy, copied] = WORDS[document.documentElement.lang] ?? WORDS.en;
  for (const field of root.querySelectorAll("input[data-copy]")) {
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
