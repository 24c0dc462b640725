/** The message about a name that nobody knows, with the one that was probably meant. */
import { nearest } from '../../core/nearest.js';

/** `prefix` stands before both names: "unknown option --memroy; did you mean --memory?" */
export function unknownName(what: string, name: string, known: readonly string[], prefix = ''): string {
  const near = nearest(name, known);
  return `unknown ${what} ${prefix}${name}${near === undefined ? '' : `; did you mean ${prefix}${near}?`}`;
}
