/** The page of a cluster whose status is made up, in a real browser. Not for: what a real cluster shows. */
import type { ExecutionContext } from 'ava';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readAssets } from '../../server/http/assets.js';
import { Events } from '../../server/http/events.js';
import type { ClusterStatus } from '../../server/status.js';
import { visit, type Visit } from './browser.js';

export interface MadePage extends Visit {
  /** Streams of events that the page has opened. */
  readonly streams: () => number;
}

/** It looks ten times a second. */
export async function visitMade(t: ExecutionContext, look: () => ClusterStatus): Promise<MadePage> {
  const events = new Events({ hasJoined: () => true, look: () => Promise.resolve(look()), lookMs: 100 });
  const assets = readAssets();
  let streams = 0;
  const server = createServer((request, response) => {
    const asset = assets.get(request.url ?? '');
    response.writeHead(200, { 'Content-Type': asset?.type ?? 'text/event-stream' });
    if (asset !== undefined) {
      response.end(asset.body);
      return;
    }
    streams += 1;
    response.flushHeaders();
    events.add(response, {}, request.socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    events.close();
    server.close();
  });
  const visited = await visit(t, `127.0.0.1:${(server.address() as AddressInfo).port}`);
  return { ...visited, streams: () => streams };
}
