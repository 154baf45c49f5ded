// Chosen files, and why listening or reading failed.

const DURATION_MAX_S = 600;

class FileTooLong extends Error {}

/** Refuse a file of more than ten minutes before it is decoded: five seconds of a channel take a megabyte. */
export async function checkDuration(file) {
  if (file.size === 0) throw makeUnplayable();
  const url = URL.createObjectURL(file);
  try {
    const audio = new Audio();
    audio.preload = 'metadata';
    const known = new Promise((resolve, reject) => {
      audio.addEventListener('loadedmetadata', resolve);
      audio.addEventListener('error', () => reject(makeUnplayable()));
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
  return new DOMException('It cannot be played.', 'EncodingError');
}

/** Return the message for an error of a microphone or a file. */
export function nameFailure(error) {
  if (error instanceof FileTooLong) return 'file_too_long';
  if (error instanceof RangeError) return 'rate_too_low';
  switch (error.name) {
    case 'EncodingError':
      return 'file_unplayable';
    case 'NotAllowedError':
    case 'SecurityError':
      return 'denied';
    case 'NotFoundError':
      return 'no_microphone';
    case 'AbortError':
      // The module of the AudioWorklet is fetched only when listening begins, when the device may be offline.
      return 'not_loaded';
    default:
      return 'microphone_failed';
  }
}
