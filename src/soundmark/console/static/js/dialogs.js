// Dialogs for links that also lead to a page, and menus that close by themselves.

/**
 * Open the `<dialog>` that a link names by `data-dialog` in place of the page that it leads to.
 *
 * @param {Document} root
 */
export function openDialogs(root) {
  root.addEventListener("click", (event) => {
    if (!(event.target instanceof Element) || event.defaultPrevented) return;
    const closing = event.target.closest("[data-close]");
    if (closing !== null) closing.closest("dialog")?.close();
    // A click on the backdrop is one on the dialog itself, outside its box.
    if (event.target instanceof HTMLDialogElement && isOutside(event, event.target)) event.target.close();
    const link = event.target.closest("a[data-dialog]");
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const dialog = root.getElementById(link.dataset.dialog ?? "");
    if (!(dialog instanceof HTMLDialogElement)) return;
    event.preventDefault();
    dialog.showModal();
  });
}

/**
 * Close an open menu by Escape, by a click elsewhere, and when another opens.
 *
 * @param {Document} root
 */
export function closeMenus(root) {
  root.addEventListener("click", (event) => {
    for (const menu of listOpenMenus(root)) {
      if (!menu.contains(/** @type {Node} */ (event.target))) menu.open = false;
    }
  });
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of listOpenMenus(root)) {
      menu.open = false;
      if (menu.contains(root.activeElement)) menu.querySelector("summary")?.focus();
    }
  });
}

/**
 * @param {Document} root
 * @returns {NodeListOf<HTMLDetailsElement>}
 */
function listOpenMenus(root) {
  return root.querySelectorAll("details.menu[open]");
}

/**
 * @param {MouseEvent} event
 * @param {HTMLDialogElement} dialog
 */
function isOutside(event, dialog) {
  const box = dialog.getBoundingClientRect();
  return event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom;
}
