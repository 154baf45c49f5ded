// Chosen files, and why one was not heard.

const DURATION_MAX_S = 600;
const SIZE_MAX = 50_000_000;
const MEASURING_MS = 5000;

class FileTooLong extends Error {}

class FileTooLarge extends Error {}

/**
 * Refuse a file of more than ten minutes before it is decoded: five seconds of a channel take a megabyte.
 *
 * @param {File} file
 */
export async function checkDuration(file) {
  if (file.size === 0) throw makeUnplayable();
  const url = URL.createObjectURL(file);
  try {
    const audio = new Audio();
    audio.preload = "metadata";
    const known = new Promise((resolve, reject) => {
      audio.addEventListener("loadedmetadata", resolve);
      audio.addEventListener("error", () => reject(makeUnplayable()));
    });
    audio.src = url;
    await known;
    // A stream does not say how long it is. Its end shows it.
    if (audio.duration === Infinity) await seekEnd(audio);
    if (audio.duration === Infinity && file.size > SIZE_MAX) throw new FileTooLarge();
    if (audio.duration !== Infinity && !(audio.duration <= DURATION_MAX_S)) throw new FileTooLong();
  } finally {
    URL.revokeObjectURL(url);
  }
}

/**
 * Wait until the duration is known, or for a few seconds.
 *
 * @param {HTMLAudioElement} audio
 */
async function seekEnd(audio) {
  const measured = new Promise((resolve) => {
    audio.addEventListener("durationchange", () => audio.duration < Infinity && resolve(null));
    setTimeout(resolve, MEASURING_MS);
  });
  audio.currentTime = Number.MAX_SAFE_INTEGER;
  await measured;
}

function makeUnplayable() {
  return new DOMException("It cannot be played.", "EncodingError");
}

/**
 * Return the message for what went wrong with a file.
 *
 * @param {unknown} error
 */
export function nameFileFailure(error) {
  if (error instanceof FileTooLarge) return "file_too_large";
  return error instanceof FileTooLong ? "file_too_long" : "file_unplayable";
}
