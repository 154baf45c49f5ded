/** The frames that were reported, of which each is reported again only after a time. */

const REPORTED_MAX = 4096;

export class Reported {
  /** @param {number} repeatAfter */
  constructor(repeatAfter) {
    this._repeatAfter = repeatAfter;
    /** @type {Map<string, number>} when each frame was reported */
    this._times = new Map();
  }

  /**
   * Return whether a frame is to be reported, which it then is.
   *
   * @param {string} text
   * @param {number} now
   */
  isDue(text, now) {
    const reportedAt = this._times.get(text) ?? -Infinity;
    const isDue = now - reportedAt >= this._repeatAfter;
    // Added anew, because the frame that was heard least recently is forgotten first.
    this._times.delete(text);
    this._times.set(text, isDue ? now : reportedAt);
    if (this._times.size > REPORTED_MAX) this._times.delete(/** @type {string} */ (this._times.keys().next().value));
    return isDue;
  }
}
