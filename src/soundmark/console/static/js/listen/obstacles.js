// What keeps a browser from hearing and verifying at all.

/** Return the state that says so, or null. */
export async function findObstacle() {
  // Without https, a browser has neither a microphone nor cryptography.
  if (!window.isSecureContext || !crypto.subtle) return 'insecure';
  try {
    await crypto.subtle.generateKey('Ed25519', false, ['sign', 'verify']);
  } catch {
    return 'cannot_verify';
  }
  return null;
}
