// Chosen files, and why one was not heard.

const DURATION_MAX_S = 600;

class FileTooLong extends Error {}

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
    // A stream without a length has an infinite one.
    if (!(audio.duration <= DURATION_MAX_S)) throw new FileTooLong();
  } finally {
    URL.revokeObjectURL(url);
  }
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
  return error instanceof FileTooLong ? "file_too_long" : "file_unplayable";
}
