/** What a server's HTTP port answers. */
import { once } from 'node:events';
import { request as plain, type IncomingHttpHeaders, type RequestOptions } from 'node:http';
import { request as secure } from 'node:https';
import type { RequestOptions as SecureOptions } from 'node:https';

export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** `at` is host:port. */
export async function ask(
  at: string,
  path: string,
  {
    body,
    ...options
  }: RequestOptions & Pick<SecureOptions, 'ca' | 'cert' | 'key' | 'servername'> & { readonly body?: string } = {},
): Promise<HttpAnswer> {
  const [host = '', port = ''] = at.split(/:(?=\d+$)/);
  const isSecure = options.ca !== undefined;
  const given = { host, port, path, agent: false, ...options };
  const request = isSecure ? secure(given) : plain(given);
  request.end(body);
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage];
  let text = '';
  for await (const part of response.setEncoding('utf8')) text += String(part);
  return { status: response.statusCode ?? 0, headers: response.headers, text };
}

export const bearer = (token: string): RequestOptions => ({ headers: { authorization: `Bearer ${token}` } });

/** Names and values of Prometheus text: `name{label="x"}` to its value. */
export function samples(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  );
}
