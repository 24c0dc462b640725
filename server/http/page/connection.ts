/** What the page says while it hears nothing from its server. */
import { isFinal, type Refusal } from './follow.js';

/** `seen`: the clock time of the look that is shown; undefined: none is. */
export function lostText(server: string, refusal: Refusal | undefined, seen: string | undefined): string {
  const of = seen === undefined ? '' : ` What is shown is of ${seen}.`;
  if (refusal === undefined)
    return `The connection to ${server} is broken. It is made again as soon as that can be.${of}`;
  const { status, text } = refusal;
  const refused = `${server} refuses this page: ${text === '' ? `HTTP status ${status}` : text}.`;
  const next = isFinal(refusal)
    ? 'Load the page again, with a token or a certificate of a monitor or an operator that is good.'
    : 'It is asked again every few seconds.';
  return `${refused} ${next}${of}`;
}
