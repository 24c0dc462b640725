import test from 'ava';
import { lostText } from './connection.js';

test('a page that hears nothing says whether it was refused, with what, and what to do', (t) => {
  t.is(
    lostText('s1', undefined, '12:03:04'),
    'The connection to s1 is broken. It is made again as soon as that can be. What is shown is of 12:03:04.',
  );
  const full = { status: 503, text: '16 pages are open at this server already: close one of them' };
  t.is(lostText('s1', full, undefined), `s1 refuses this page: ${full.text}. It is asked again every few seconds.`);
  for (const status of [401, 403, 429])
    t.regex(lostText('s1', { status, text: 'no' }, undefined), /page: no\. Load the page again, with a token/);
  t.regex(lostText('s1', { status: 502, text: '' }, undefined), /refuses this page: HTTP status 502\. It is asked/);
});
