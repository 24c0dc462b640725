/** What a client with a token is told by a server, and a native client that makes what it likes of it. */
import { once } from 'node:events';
import { EventEmitter } from 'node:events';
import type { Provider } from '../../core/metadata/state.js';
import { MapAssembler } from '../../core/protocol/index.js';
import type { ClientMap } from '../../core/protocol/messages.js';
import { Routes, shardRange } from '../../client/routes.js';
import { localCapabilities } from '../../client/transport.js';
import { ControlClient } from '../../net/control-client.js';
import { Driver } from './native-pair.js';

const WAIT_MS = 60_000;

export interface Told {
  readonly map: ClientMap;
  readonly ticket: Uint8Array;
}

/** The first whole map in which every shard is open, and the ticket. `ask` may make a call meanwhile. */
export async function toldTo(
  address: string,
  token: string,
  ask?: (client: ControlClient) => Promise<void>,
): Promise<Told> {
  const news = new EventEmitter();
  const assembler = new MapAssembler();
  const opened = once(news, 'open');
  const client = await ControlClient.open({
    address,
    trust: undefined,
    timeoutMs: WAIT_MS,
    hello: { role: 'client', token },
    frame: (frame) => {
      const map = frame.t === 'map' ? assembler.push(frame) : undefined;
      if (map?.shards.every((s) => s.incarnation !== undefined) === true) news.emit('open', map);
    },
  });
  try {
    const [map] = (await opened) as [ClientMap];
    await ask?.(client);
    return { map, ticket: client.welcome.ticket ?? new Uint8Array() };
  } finally {
    client.close();
  }
}

/** Goes to the shards of the map with any ticket. */
export function clientOf({ map }: Told, ticket: Uint8Array, provider: Provider): Driver {
  const { first, count } = shardRange(map);
  const driver = new Driver({
    hashSeed: Buffer.from(map.hashSeed, 'hex'),
    shards: count,
    firstShard: first,
    ticket,
    timeoutMs: WAIT_MS,
  });
  const { owners, routes } = new Routes({ choice: provider, strict: true, secure: false }, localCapabilities()).update(
    map,
  );
  driver.native.setOwners(owners);
  driver.native.setRoutes(routes);
  return driver;
}
