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
