/** Reads the properties that belong to one database (`redis.host`, ...) and refuses the ones that it does not know. */
import { FarkvError } from '../../../core/errors.js';
import { unknownName } from '../../../core/nearest.js';
import { howToInstall } from '../../../native/package.js';
import type { Properties } from '../properties.js';

/** known: the properties of this database with their defaults. The result has a value for each. */
export function databaseSettings<K extends string>(
  properties: Properties,
  prefix: string,
  known: Readonly<Record<K, string>>,
): Readonly<Record<K, string>> {
  for (const name of properties.keys()) {
    if (!name.startsWith(prefix) || Object.hasOwn(known, name)) continue;
    throw new FarkvError('ERR_CONFIG', unknownName('property', name, Object.keys(known)));
  }
  const settings: Record<string, string> = {};
  for (const [name, byDefault] of Object.entries<string>(known))
    settings[name] = properties.get(name)?.trim() ?? byDefault;
  return settings as Record<K, string>;
}

export function numberSetting<K extends string>(
  settings: Readonly<Record<K, string>>,
  name: K,
  low: number,
  high: number,
): number {
  const value = settings[name] === '' ? Number.NaN : Number(settings[name]);
  if (!(value >= low && value <= high)) {
    throw new FarkvError(
      'ERR_CONFIG',
      `property ${name}=${settings[name]}: a number from ${low} to ${high} is expected`,
    );
  }
  return value;
}

export function choiceSetting<K extends string, const T extends string>(
  settings: Readonly<Record<K, string>>,
  name: K,
  choices: readonly T[],
): T {
  const found = choices.find((choice) => choice === settings[name]);
  if (found === undefined)
    throw new FarkvError('ERR_CONFIG', `property ${name}=${settings[name]}: one of ${choices.join(', ')} is expected`);
  return found;
}

/** Imports the client of another store, which farkv does not depend on. */
export async function optionalPackage<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    if (
      cause instanceof Error &&
      'code' in cause &&
      (cause.code === 'ERR_MODULE_NOT_FOUND' || cause.code === 'MODULE_NOT_FOUND')
    ) {
      throw new FarkvError('ERR_CONFIG', `this benchmark needs the package ${name}, ${howToInstall(name)}`, { cause });
    }
    throw cause;
  }
}

/** The error of a store that does not answer. */
export function unreachable(store: string, address: string, cause: unknown): FarkvError {
  return new FarkvError(
    'ERR_DISCONNECTED',
    `${store} at ${address} cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`,
    { cause },
  );
}
