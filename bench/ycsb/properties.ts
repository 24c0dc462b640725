/**
 * Java property files, as YCSB workloads are written in: the subset of java.util.Properties that text files use.
 *
 * A logical line is `key=value`, `key: value` or `key value`; `#` and `!` begin a comment; a backslash at the end of a
 * line continues it, without the blanks that the next line begins with; `\t`, `\n`, `\r`, `\f`, `\\` and `\uXXXX` are
 * escapes, any other escaped character stands for itself. Keys are unique: the last one counts. Not for: XML
 * properties.
 */
export type Properties = ReadonlyMap<string, string>;

const BLANK = /^[ \t\f]+/;

/** Joins natural lines that end in an odd number of backslashes; drops blank lines and comments. */
function logicalLines(text: string): string[] {
  const lines: string[] = [];
  let open: string | undefined;
  for (const natural of text.split(/\r\n|\n|\r/)) {
    const line = natural.replace(BLANK, '');
    if (open === undefined && (line === '' || line.startsWith('#') || line.startsWith('!'))) continue;
    const whole: string = (open ?? '') + line;
    const slashes = whole.length - whole.replace(/\\+$/, '').length;
    if (slashes % 2 === 1) {
      open = whole.slice(0, -1);
    } else {
      lines.push(whole);
      open = undefined;
    }
  }
  if (open !== undefined) lines.push(open);
  return lines;
}

function unescape(text: string): string {
  return text.replace(
    /\\(?:u([0-9a-fA-F]{4})|([^]))/g,
    (_, unicode: string | undefined, character: string | undefined) => {
      if (unicode !== undefined) return String.fromCharCode(parseInt(unicode, 16));
      switch (character) {
        case 't':
          return '\t';
        case 'n':
          return '\n';
        case 'r':
          return '\r';
        case 'f':
          return '\f';
        default:
          return character ?? '';
      }
    },
  );
}

export function parseProperties(text: string): Map<string, string> {
  const properties = new Map<string, string>();
  // A byte order mark, which some editors put first, is none of the first name.
  for (const line of logicalLines(text.replace(/^\ufeff/, ''))) {
    // The key ends at the first unescaped blank, `=` or `:`; one `=` or `:` may follow the blanks.
    const match = /^((?:\\[^]|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?([^]*)$/.exec(line);
    if (match) properties.set(unescape(match[1] ?? ''), unescape(match[2] ?? ''));
  }
  return properties;
}
