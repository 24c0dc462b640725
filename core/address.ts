/** Addresses as people write them: `127.0.0.1:7400`, `[::1]:7400`, `db1.example.net`. Pure. */

/** Of the control plane. */
export const DEFAULT_PORT = 7400;

export interface HostPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

const SHAPE = /^(?:\[([0-9a-fA-F:.]+(?:%[\w.-]+)?)\]|([^\s:/[\]@?]+))(?::(\d{1,5}))?$/;

function parse(value: unknown, defaultPort: number, example: string): HostPort {
  const text = String(value).trim();
  const match = SHAPE.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3] ?? defaultPort);
  if (host === undefined || !(port <= 65_535)) throw new Error(`"${text}" is not an address such as ${example}`);
  return { host, port };
}

/** host:port. Throws a plain Error whose text completes "--listen: ...". */
export function parseHostPort(value: unknown): HostPort {
  return parse(value, Number.NaN, '127.0.0.1:7400 or [::1]:7400');
}

/** host:port or host, as somebody writes it who wants to connect. */
export function parseServerAddress(value: unknown): HostPort {
  return parse(value, DEFAULT_PORT, '127.0.0.1:7400, [::1]:7400 or db1.example.net');
}

export function formatHostPort({ host, port }: HostPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What `farkv://[token@]host:port[,host:port...][?name=value&...]` says; `farkvs://` asks for TLS. */
export interface ClusterAddress {
  /** host:port each. */
  readonly servers: readonly string[];
  readonly token?: string;
  readonly tls?: true;
  readonly query: ReadonlyMap<string, string>;
}

/** A part of an address in which characters may be written as %20. Throws a plain Error that does not repeat it. */
export function decodedPart(text: string, what: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new Error(
      `${what} in the address has a % that is followed by no two hexadecimal digits, or by no UTF-8: write %25 for %`,
    );
  }
}

/** Reads one, or a list of host:port; `server` reads one of those. Throws what it throws, or a plain Error. */
export function parseClusterAddress(text: string, server: (text: string) => HostPort): ClusterAddress {
  const match = /^(farkvs?):\/\/(?:([^@/?]*)@)?([^/?]*)\/?(?:\?(.*))?$/.exec(text);
  if (match === null && text.includes('://'))
    throw new Error('an address begins with farkv:// or farkvs://, or is host:port');
  const hosts = (match?.[3] ?? text).split(',').map((host) => host.trim());
  const token = match?.[2] === undefined ? undefined : decodedPart(match[2], 'the token');
  return {
    servers: hosts.map((host) => formatHostPort(server(host))),
    query: new Map(new URLSearchParams(match?.[4] ?? '')),
    ...(token === undefined ? {} : { token }),
    ...(match?.[1] === 'farkvs' ? { tls: true } : {}),
  };
}
