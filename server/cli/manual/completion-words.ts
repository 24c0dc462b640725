/** What the completions of all shells make their words of. */
import type { OptionDefinition } from './definition.js';

export const HELP: OptionDefinition = { name: 'help', isFlag: true, choices: [], describe: 'Show help' };

const dashes = (name: string): string => (name.length === 1 ? `-${name}` : `--${name}`);

/** How an option may be typed: one that is on by default is turned off by --no-NAME. */
export function spellings({ name, alias, isFlag, default: value }: OptionDefinition): string[] {
  const all = [...(alias === undefined ? [] : [alias]), name].map(dashes);
  return isFlag && value === 'true' ? [...all, `--no-${name}`] : all;
}

export const ofFiles = ({ name }: { readonly name: string }): boolean =>
  /(?:^|-)(?:file|dir|directory|cert|key|ca|secrets|config|P)$/.test(name) && name !== 'key';

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The first part of a description, which a list of options has room for. */
export const brief = (describe: string): string => /^.*?(?=[;:.(] |[;:.]?$| \(|, )/.exec(describe)?.[0] ?? describe;
