// A field that was refused looks so until it is changed.

/**
 * Take a field's refusal away when it is edited, beside the field and in the summary of the form.
 *
 * @param {HTMLFormElement} form
 */
export function clearRefusalsOnEdit(form) {
  form.addEventListener("input", (event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    const box = field.closest(".field.refused");
    if (box === null) return;
    box.classList.remove("refused");
    box.querySelector(".refusal")?.remove();
    field.removeAttribute("aria-invalid");
    const hint = document.getElementById(`hint-${field.name}`);
    if (hint === null) field.removeAttribute("aria-describedby");
    else field.setAttribute("aria-describedby", hint.id);
    const summary = document.getElementById("trouble");
    summary?.querySelector(`a[href="#field-${field.name}"]`)?.closest("li")?.remove();
    // Of a trouble that names fields, nothing is left without one.
    if (summary?.querySelector("ul") && !summary.querySelector("li")) summary.remove();
  });
}
