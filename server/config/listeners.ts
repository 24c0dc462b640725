/**
 * The addresses that a server listens on, with names in the place of hosts resolved: once, so that the control plane, the
 * data plane and the ports of other uses listen on the same one; the native side takes numbers alone.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { HostPort } from '../../core/address.js';
import { FarkvError } from '../../core/errors.js';
import type { ServerSettings } from './settings.js';

const OPTIONS = {
  listen: '--listen',
  peerListen: '--peer-listen',
  fabricListen: '--fabric-listen',
  httpListen: '--http-listen',
} as const;

/** Throws ERR_ADDRESS_INVALID for a name that has no address. */
export async function resolveListeners(settings: ServerSettings): Promise<ServerSettings> {
  const hosts = new Map<string, Promise<string>>();
  const resolve = async (option: keyof typeof OPTIONS): Promise<HostPort[]> =>
    await Promise.all(
      settings[option].map(async ({ host, port }) => {
        if (isIP(host) !== 0) return { host, port };
        const known = hosts.get(host) ?? addressOf(host, OPTIONS[option]);
        hosts.set(host, known);
        return { host: await known, port };
      }),
    );
  const [listen, peerListen, fabricListen, httpListen] = [
    await resolve('listen'),
    await resolve('peerListen'),
    await resolve('fabricListen'),
    await resolve('httpListen'),
  ];
  return { ...settings, listen, peerListen, fabricListen, httpListen };
}

async function addressOf(host: string, option: string): Promise<string> {
  try {
    // Commands and clients look for a server at 127.0.0.1 unless they are told another place.
    return (await lookup(host, { verbatim: false })).address;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new FarkvError(
      'ERR_ADDRESS_INVALID',
      `${option}: ${host} has no address (${code ?? 'the look-up failed'}): give an address of this machine, such as 127.0.0.1 or 0.0.0.0`,
      { cause },
    );
  }
}
