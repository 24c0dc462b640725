/**
 * Text that somebody else has written, made fit for a line of a terminal or of a log. A server, a client, another store
 * and a file may all name things so that a terminal obeys: control characters move its cursor and change its title,
 * marks of direction turn words around, line separators begin a line that nobody has written.
 *
 * Each such character is shown as an escape: \n, \x1b, \u202e. What has been made visible stays as it is when that is
 * done again. It is for people: a backslash stays one, so the text before cannot always be told. JSON can be: there the
 * same characters are escapes of JSON.
 */

/** Control characters (C0, DEL, C1), marks of format and direction, line and paragraph separators, half characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
/** The same, but for line feeds and tabs. */
const HIDDEN_IN_LINES = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const NAMED: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/** UTF-16 units, as JSON and JavaScript write them. */
function units(hidden: string): string {
  let out = '';
  for (let i = 0; i < hidden.length; i++) out += `\\u${hidden.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return out;
}

function escapeOf(hidden: string): string {
  const code = hidden.charCodeAt(0);
  return NAMED.get(hidden) ?? (code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : units(hidden));
}

/** With what `how` makes of each character that would not be seen. */
export function replaceHidden(text: string, how: (hidden: string) => string): string {
  return text.replace(HIDDEN, how);
}

/** For one line: line feeds and tabs are escapes too. */
export function visible(text: string): string {
  return replaceHidden(text, escapeOf);
}

/** For several lines that this program has made, with their tabs and line feeds. */
export function visibleLines(text: string): string {
  return text.replace(HIDDEN_IN_LINES, escapeOf);
}

/** As JSON.stringify; whoever parses it gets the same value, with every character that it had. */
export function visibleJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(HIDDEN_IN_LINES, units);
}

/** A decoded message, each text in it, and each name of a field, as `visible` makes it. */
export function allVisible(value: unknown): unknown {
  if (typeof value === 'string') return visible(value);
  if (Array.isArray(value)) return value.map(allVisible);
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [visible(name), allVisible(each)]));
}
