import test from 'ava';
import { allVisible, visible, visibleJson, visibleLines } from './visible-text.js';

test('what a terminal would obey is shown as an escape, in one line', (t) => {
  t.is(visible('a\x1b]0;title\x07\x9b2J\x7f\r\n\tz'), 'a\\x1b]0;title\\x07\\x9b2J\\x7f\\r\\n\\tz');
  t.is(
    visible('\u202eabc\u2066\u200b\u2028\u2029\ufeff\u061c'),
    '\\u202eabc\\u2066\\u200b\\u2028\\u2029\\ufeff\\u061c',
  );
  t.is(visible('half \ud800, a tag \u{e0041}'), 'half \\ud800, a tag \\udb40\\udc41');
  t.is(visible('Ünïcödé, 漢字, 😀 and \\x1b'), 'Ünïcödé, 漢字, 😀 and \\x1b');
});

test('what is visible stays as it is', (t) => {
  const once = visible('\x1b\n\u202e\\');
  t.is(visible(once), once);
  t.is(visibleLines(once), once);
});

test('lines keep their line feeds and tabs, and nothing else of the kind', (t) => {
  t.is(visibleLines('a\tb\nc\r\n\x1b[2K\u2028'), 'a\tb\nc\\r\n\\x1b[2K\\u2028');
});

test('JSON has escapes of its own, so that whoever parses it gets the same', (t) => {
  const value = { '\x9bname': 'a\x1b\x7f\u202e\u2028\u{e0041}\n"\\', list: [1, null] };
  for (const indent of [undefined, 2]) {
    const text = visibleJson(value, indent);
    t.regex(text, /^[\n\x20-\x7e]*$/);
    t.deepEqual(JSON.parse(text), value);
  }
});

test('a decoded message is visible in each text and each name', (t) => {
  const bytes = Buffer.from('\x1b');
  t.deepEqual(allVisible({ '\x07': ['\x1b', { b: '\x9b', n: 1, f: false, nothing: null }], bytes }), {
    '\\x07': ['\\x1b', { b: '\\x9b', n: 1, f: false, nothing: null }],
    bytes,
  });
});
