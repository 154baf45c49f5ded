// What keeps a browser or a microphone from hearing.

/** Return the state that says why this browser can neither hear nor verify, or null. */
export async function findObstacle() {
  // Without https, a browser has neither a microphone nor cryptography.
  if (!window.isSecureContext || !crypto.subtle) return "insecure";
  try {
    await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]);
  } catch {
    return "cannot_verify";
  }
  return null;
}

/**
 * Return the message for what `listen` threw.
 *
 * @param {Error} error
 */
export function nameMicrophoneFailure(error) {
  if (error instanceof RangeError) return "rate_too_low";
  switch (error.name) {
    case "NotAllowedError":
    case "SecurityError":
      return "denied";
    case "NotFoundError":
      return "no_microphone";
    case "AbortError":
      // The module of the AudioWorklet is fetched only when listening begins, when the device may be offline. Firefox
      // throws the same if a microphone does not start.
      return "not_loaded";
    case "NotSupportedError":
      return "rate_unsupported";
    default:
      return "microphone_failed";
  }
}
