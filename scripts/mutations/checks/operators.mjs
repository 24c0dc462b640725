/**
 * What a mutation does to the code at its marker. An operator is given the file's tokens, and which of them stand on the
 * marked line; it returns the edit { first, last, by }: tokens `first` to `last` become the text `by`. It throws where it
 * does not apply.
 */

const OPENING = ['(', '[', '{'];
const CLOSING = [')', ']', '}'];

/** The token that closes what `tokens[i]` opens. */
function closing(tokens, i) {
  let depth = 0;
  for (let k = i; k < tokens.length; k++) {
    if (OPENING.includes(tokens[k].text)) depth++;
    if (CLOSING.includes(tokens[k].text) && --depth === 0) return k;
  }
  throw new Error(`nothing closes "${tokens[i].text}"`);
}

/** The token that opens what `tokens[i]` closes. */
function opening(tokens, i) {
  let depth = 0;
  for (let k = i; k >= 0; k--) {
    if (CLOSING.includes(tokens[k].text)) depth++;
    if (OPENING.includes(tokens[k].text) && --depth === 0) return k;
  }
  throw new Error(`nothing opens "${tokens[i].text}"`);
}

/** The last token of the statement that begins with `tokens[i]`. */
function endOfStatement(tokens, i) {
  const { text } = tokens[i];
  if (text === '{') return closing(tokens, i);
  if (text === 'if' || text === 'while' || text === 'for' || text === 'switch') {
    const end = endOfStatement(tokens, closing(tokens, i + 1) + 1);
    return text === 'if' && tokens[end + 1]?.text === 'else' ? endOfStatement(tokens, end + 2) : end;
  }
  for (let k = i; k < tokens.length; k++) {
    if (tokens[k].text === ';') return k;
    if (OPENING.includes(tokens[k].text)) k = closing(tokens, k);
    else if (CLOSING.includes(tokens[k].text)) break;
  }
  throw new Error(`no statement begins with "${text}"`);
}

/** The first token of the marked line's statement: a block may end before it, as in "} else if (...) {". */
const beginning = ({ tokens, first, last }) => (tokens[first].text === '}' && first < last ? first + 1 : first);

const squeeze = (text) => text.replaceAll(/\s+/g, '');

/** Each place where the text begins on the marked line; blanks and comments do not count. */
function placesOf({ tokens, first, last }, text) {
  const wanted = squeeze(text);
  const found = [];
  for (let i = first; i <= last; i++) {
    let k = i;
    let read = '';
    while (read.length < wanted.length && k < tokens.length) read += squeeze(tokens[k++].text);
    if (read === wanted) found.push({ first: i, last: k - 1 });
  }
  return found;
}

/** The only one of them. */
function placeOf(place, text) {
  const found = placesOf(place, text);
  if (found.length !== 1) throw new Error(`"${text}" stands ${found.length} times on the marked line`);
  return found[0];
}

const TIES = ['&&', '||', '??', ','];
const BEFORE = [...TIES, ...OPENING, 'return', '=', '+=', '&=', '|=', '?', ':', ';', '=>'];
const AFTER = [...TIES, ...CLOSING, '?', ':', ';', '=>'];

/** The operand, argument, element or property that the text is a part of; it may be there more than once. */
function operandOf(place, text) {
  const { tokens } = place;
  const found = placesOf(place, text).map(({ first, last }) => {
    for (let k = first; k <= last; k++) if (OPENING.includes(tokens[k].text)) last = Math.max(last, closing(tokens, k));
    while (!BEFORE.includes(tokens[first - 1].text))
      first = CLOSING.includes(tokens[first - 1].text) ? opening(tokens, first - 1) : first - 1;
    while (!AFTER.includes(tokens[last + 1].text))
      last = OPENING.includes(tokens[last + 1].text) ? closing(tokens, last + 1) : last + 1;
    return { first, last };
  });
  if (found.length === 0 || found.some(({ first }) => first !== found[0].first))
    throw new Error(`"${text}" is in ${found.length} operands on the marked line`);
  return found[0];
}

/** The condition of the line's `if` or `while`; else that of its `?`; else what it returns or assigns. */
function condition({ tokens, first, last }) {
  const on = (...texts) => {
    const i = tokens.slice(first, last + 1).findIndex(({ text }) => texts.includes(text));
    return i < 0 ? undefined : first + i;
  };
  const branch = on('if', 'while');
  if (branch !== undefined) return { first: branch + 2, last: closing(tokens, branch + 1) - 1 };
  const question = on('?');
  if (question !== undefined) {
    const ends = ['=', 'return', ',', '=>', '?', ':', ';', ...OPENING];
    let i = question;
    while (!ends.includes(tokens[i - 1].text))
      i = CLOSING.includes(tokens[i - 1].text) ? opening(tokens, i - 1) : i - 1;
    return { first: i, last: question - 1 };
  }
  const value = on('return', '=');
  if (value === undefined) throw new Error('there is no condition on the marked line');
  return { first: value + 1, last: endOfStatement(tokens, value) - 1 };
}

/** Deletes the statement that begins on the marked line, or with this text on it. */
export const drop = (text) => (place) => {
  const first = text === undefined ? beginning(place) : placeOf(place, text).first;
  return { first, last: endOfStatement(place.tokens, first), by: ';' };
};

const constant = (by) => (text) => (place) => ({
  ...(text === undefined ? condition(place) : operandOf(place, text)),
  by,
});

/** The condition is false, or the value that is returned or assigned; with a text, the operand that has it. */
export const never = constant('false');

/** The same, but true. */
export const always = constant('true');

/** Leaves out the operand of &&, || or ??, argument, element or property that has the text, with what ties it to the next. */
export const without = (text) => (place) => {
  const { first, last } = operandOf(place, text);
  const before = place.tokens[first - 1].text;
  const after = place.tokens[last + 1].text;
  const tie = TIES.find((one) => one === before || one === after);
  if (tie === undefined) throw new Error(`"${text}" is no operand`);
  return tie === after ? { first, last: last + 1, by: '' } : { first: first - 1, last, by: '' };
};

/** Puts one of its arguments, counted from 0, in the place of a call. */
export const unwrap =
  (callee, argument = 0) =>
  (place) => {
    const { tokens, source } = place;
    const { first, last: name } = placeOf(place, callee);
    const last = closing(tokens, name + 1);
    const starts = [name + 2];
    for (let k = name + 2; k < last; k++) {
      if (OPENING.includes(tokens[k].text)) k = closing(tokens, k);
      else if (tokens[k].text === ',') starts.push(k + 1);
    }
    const end = argument + 1 < starts.length ? starts[argument + 1] - 2 : last - 1;
    return { first, last, by: source.slice(tokens[starts[argument]].start, tokens[end].end) };
  };

/** Puts another operand, constant or call in the place of one. */
export const instead = (text, by) => (place) => ({ ...placeOf(place, text), by });

/** The statement comes after the next one. */
export const swap = () => (place) => {
  const { tokens } = place;
  const first = beginning(place);
  const middle = endOfStatement(tokens, first);
  const last = endOfStatement(tokens, middle + 1);
  const text = (from, to) => place.source.slice(tokens[from].start, tokens[to].end);
  return { first, last, by: `${text(middle + 1, last)} ${text(first, middle)}` };
};
