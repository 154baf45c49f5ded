// The page on which a person waits for a payment looks by itself, at growing intervals, and stops after a while.

const FIRST_PAUSE_MS = 2_000;
const GROWTH = 1.5;
const PAUSE_MAX_MS = 30_000;
const WAIT_MAX_MS = 15 * 60_000;

const waiting = document.getElementById("waiting");
wait(Date.now() + WAIT_MAX_MS);

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
    const answer = await fetch(waiting.dataset.statusUrl, { redirect: "manual", cache: "no-store" });
    return answer.ok && (await answer.json()).status !== "pending";
  } catch {
    return false;
  }
}

function say(what) {
  for (const each of waiting.querySelectorAll("[data-while]")) each.hidden = each.dataset.while !== what;
}
