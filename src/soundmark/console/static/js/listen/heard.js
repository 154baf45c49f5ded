// What was heard: each token once, resolved and verified here, or why there is nothing to show.

import { copyTemplate, fill, fillState } from './words.js';
import { writeResource } from './intent.js';
import { makeVisible } from './safe_text.js';

const SHOWN_MAX = 20;

export class Heard {
  /** @param {Element} list @param {Receiver} receiver @param {Consent} consent */
  constructor(list, receiver, consent) {
    this._list = list;
    this._receiver = receiver;
    this._consent = consent;
    this._tokens = new Map();
  }

  /** Resolve a token that was heard, unless its answer is on its way or on the page. */
  add(token) {
    if (this._tokens.has(token)) return;
    document.getElementById('nothing').hidden = true;
    const article = document.createElement('article');
    article.className = 'heard';
    this._tokens.set(token, article);
    this._list.prepend(article);
    if (this._tokens.size > SHOWN_MAX) {
      const [[oldest, shown]] = this._tokens;
      this._tokens.delete(oldest);
      shown.remove();
    }
    this._resolve(token, article);
  }

  async _resolve(token, article) {
    article.dataset.outcome = 'resolving';
    article.replaceChildren(copyTemplate('resolving'));
    try {
      const resolution = await this._receiver.resolve(token);
      article.replaceChildren(show(resolution));
      article.dataset.outcome = 'verified';
      await this._consent.report(resolution, article.querySelector('[data-slot="measured"]'));
    } catch (failure) {
      // Anything else is our own mistake, and goes to the console.
      if (failure.name !== 'ReceiverFailure') throw failure;
      article.replaceChildren(...fillState(failure.reason), this._offerAgain(token, article));
      article.dataset.outcome = failure.reason;
    }
  }

  _offerAgain(token, article) {
    const again = copyTemplate('again');
    again.querySelector('button').addEventListener('click', () => this._resolve(token, article));
    return again;
  }
}

function show(resolution) {
  const { intent, xrId, expiresAt } = resolution;
  const shown = copyTemplate('verified');
  fill(shown, 'type', makeVisible(intent.type));
  fill(shown, 'action', makeVisible(intent.action));
  fill(shown, 'xr_id', xrId);
  const until = shown.querySelector('[data-slot="until"]');
  until.dateTime = expiresAt.toISOString();
  until.textContent = expiresAt.toLocaleTimeString(document.documentElement.lang, { timeStyle: 'medium' });
  shown.querySelector('[data-slot="resource"]').append(writeResource(intent.resource));
  return shown;
}
