/** Which keys end a command that watches. */

/* eslint-disable no-control-regex */
/** Keys that are several bytes, of which one may be a letter: F2 is ESC O Q (ECMA-48, 5.4; xterm's control sequences). */
const SEQUENCES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)/gs;
const ENDS = /[qQ\x03]/;
/* eslint-enable no-control-regex */

/** q, and Ctrl-C, which a raw terminal gives as a byte. One read may have several keys. */
export const isEnd = (pressed: Buffer): boolean => ENDS.test(pressed.toString('latin1').replace(SEQUENCES, ''));
