/** The end of a server: whether another one may take its shards over, and what is said of those that nobody took. */
import type { Member } from '../../core/metadata/state.js';
import { boolean, record } from '../../core/protocol/check.js';
import type { Left } from '../../core/shards/index.js';
import { FarkvError } from '../../core/errors.js';
import type { Log } from '../log.js';
import type { Peers } from '../metadata/peers.js';
import { probe } from './probe.js';

const CALL_MS = 1000;
const checkStays = record<{ readonly stays: boolean }>({ stays: boolean });

/** Rejects when it has ended, or says that it is about to; one that does not answer may stay. */
export async function whetherStays(peers: Pick<Peers, 'call'>, { id, control }: Member): Promise<void> {
  await probe(control);
  const answer = await peers.call(id, 'stays', {}, CALL_MS).then(
    (value) => checkStays(value, 'stays'),
    () => undefined,
  );
  if (answer?.stays === false) throw new FarkvError('ERR_CLOSED', `${id} is about to end`);
}

const UNTAKEN = 'no other server has taken over shards SHARDS';
const SAID: Readonly<Record<Left['values'], string>> = {
  elsewhere: `${UNTAKEN}: another server has a copy with all values, and goes on with it when it misses this one`,
  'on disk': `${UNTAKEN}: no server that stays has a copy in sync: their values are on this server's disk, and wait for it`,
  lost: `${UNTAKEN}: no server that stays has a copy in sync: their values end with this server`,
  'with owner':
    'the owners of shards SHARDS were not told that the copies here end: they wait until they miss this server',
};

/** Tells operators which shards nobody has taken over, which copies are waited for, and what that means. */
export function reportLeft(left: readonly Left[], log: Pick<Log, 'warn'>): void {
  for (const values of Object.keys(SAID) as Left['values'][]) {
    const shards = left.filter((one) => one.values === values).map(({ shard }) => shard);
    shards.sort((a, b) => a - b);
    if (shards.length > 0)
      log.warn(SAID[values].replace('SHARDS', shards.join(', ')), {
        event: 'shards-left',
        shards: shards.join(),
        values,
      });
  }
}
