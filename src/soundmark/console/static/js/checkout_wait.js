// The page on which a person waits for a payment looks by itself, at growing intervals, and stops after a while.

import { getData, getElement } from "./elements.js";

const FIRST_PAUSE_MS = 2_000;
const GROWTH = 1.5;
const PAUSE_MAX_MS = 30_000;
const WAIT_MAX_MS = 15 * 60_000;

const waiting = getElement(HTMLElement, "#waiting");
wait(Date.now() + WAIT_MAX_MS);

/** @param {number} deadline */
async function wait(deadline) {
  say("looking");
  for (let pause = FIRST_PAUSE_MS; Date.now() + pause < deadline; pause = Math.min(pause * GROWTH, PAUSE_MAX_MS)) {
    await new Promise((resolve) => {
      setTimeout(resolve, pause);
    });
    if (await hasEnded()) {
      location.reload();
      return;
    }
  }
  say("stopped");
}

async function hasEnded() {
  try {
    // A session that has ended answers with a redirect.
    const answer = await fetch(getData(waiting, "statusUrl"), { redirect: "manual", cache: "no-store" });
    return answer.ok && (await answer.json()).status !== "pending";
  } catch {
    return false;
  }
}

/** @param {"looking" | "stopped"} what */
function say(what) {
  /** @type {NodeListOf<HTMLElement>} */
  const sentences = waiting.querySelectorAll("[data-while]");
  for (const each of sentences) each.hidden = each.dataset.while !== what;
}
