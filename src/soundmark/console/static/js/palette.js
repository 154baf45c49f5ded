// The search page as a dialog of every page, opened by its link, by Ctrl-K or by a slash.

const PAUSE_MS = 150;
const NO_SLASH = "soundmark-no-slash";

/**
 * Open the search in a dialog where a page links to it.
 *
 * @param {Document} root
 */
export function offerPalette(root) {
  const link = root.querySelector("a[data-palette]");
  if (!(link instanceof HTMLAnchorElement) || !("popover" in link)) return;
  const open = () => new Palette(link.href).open();
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  root.addEventListener("keydown", (event) => {
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey;
    const isChord = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (isChord || (isSlash && !isTyping(event.target) && localStorage.getItem(NO_SLASH) === null)) {
      event.preventDefault();
      if (document.querySelector("dialog:is([open], :popover-open)") === null) open();
    }
  });
}

/** One opening of the search. It takes its form and what is found from the search page itself. */
class Palette {
  /** @param {string} url of the search page */
  constructor(url) {
    this.url = url;
    this.dialog = document.createElement("dialog");
    this.dialog.id = "palette";
    // A modal dialog would make the browser style all of a long page anew.
    this.dialog.popover = "auto";
    this.loading = new AbortController();
    /** The text that the links on show were found for. */
    this.shown = "";
  }

  /** Show the dialog, and load the search page into it; where that fails, go to the page. */
  async open() {
    document.body.append(this.dialog);
    this.dialog.addEventListener("toggle", (event) => {
      if (event.newState === "closed") this.dialog.remove();
    });
    this.dialog.addEventListener("focusout", ({ relatedTarget: next }) => {
      if (next instanceof Node && !this.dialog.contains(next)) this.dialog.hidePopover();
    });
    this.dialog.setAttribute("aria-label", document.querySelector("a[data-palette] span")?.textContent?.trim() ?? "");
    this.dialog.append(makeSkeleton());
    this.dialog.showPopover();
    const search = await this.load(this.url);
    if (search === null) return;
    this.dialog.replaceChildren(search);
    const input = /** @type {HTMLInputElement} */ (search.querySelector("input[type=search]"));
    input.focus();
    let timer = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.find(input.value), PAUSE_MS);
    });
    this.dialog.addEventListener("keydown", (event) => this.move(event, input));
    offerSlash(search);
  }

  /**
   * Show what is found.
   *
   * @param {string} text
   */
  async find(text) {
    if (!this.dialog.isConnected) return;
    const url = new URL(this.url);
    url.searchParams.set("q", text);
    const found = (await this.load(url.href))?.querySelector("#found");
    if (!found) return;
    this.dialog.querySelector("#found")?.replaceWith(found);
    this.shown = text;
  }

  /**
   * Return the search of a search page; null once another is loaded, or the dialog is closed. Where the session has
   * ended, or the page cannot be loaded, go to it.
   *
   * @param {string} url
   * @returns {Promise<HTMLElement | null>}
   */
  async load(url) {
    this.loading.abort();
    const { signal } = (this.loading = new AbortController());
    let search = null;
    try {
      const answer = await fetch(url, { signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!answer.redirected) search = page.getElementById("search");
    } catch {
      // The page itself says what failed.
    }
    if (signal.aborted || !this.dialog.isConnected) return null;
    if (search === null) location.assign(url);
    return search;
  }

  /**
   * Move the focus between the field and the links by the arrow keys. In the field, Enter opens the first link; while
   * the links are those of an earlier text, it sends the form.
   *
   * @param {KeyboardEvent} event
   * @param {HTMLInputElement} input
   */
  move(event, input) {
    const links = [...this.dialog.querySelectorAll("a")];
    const at = links.indexOf(/** @type {HTMLAnchorElement} */ (document.activeElement));
    const isFound = links.length > 0 && input.value === this.shown;
    if (event.key === "Enter" && document.activeElement === input && isFound) {
      event.preventDefault();
      links[0]?.click();
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    (links[event.key === "ArrowDown" ? at + 1 : at - 1] ?? input).focus();
  }
}

/**
 * Let a person turn the slash off, which may be typed by accident or by speech (WCAG 2.2, 2.1.4).
 *
 * @param {HTMLElement} search
 */
function offerSlash(search) {
  const box = search.querySelector("input[type=checkbox]");
  if (!(box instanceof HTMLInputElement)) return;
  box.checked = localStorage.getItem(NO_SLASH) === null;
  /** @type {HTMLElement} */ (box.closest("[hidden]")).hidden = false;
  box.addEventListener("change", () => {
    if (box.checked) localStorage.removeItem(NO_SLASH);
    else localStorage.setItem(NO_SLASH, "yes");
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && target.closest("input, textarea, select, [contenteditable]") !== null;
}

function makeSkeleton() {
  const skeleton = document.createElement("span");
  skeleton.className = "skeleton";
  return skeleton;
}
