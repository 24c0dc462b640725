/**
 * `farkv shard reset`: an operator gives up copies of a shard that do not come back. The leader decides
 * (core/metadata/shard-loss.ts); whoever else is asked passes the call on.
 */
import { memberId } from '../core/metadata/check-state.js';
import { noCopy } from '../core/metadata/shard-loss.js';
import { list, oneOf, record, uint } from '../core/protocol/check.js';
import type { CallContext } from './calls.js';
import type { ResetDone } from './metadata/leader-duties.js';
import { noLeader } from './metadata/no-leader.js';
import { argumentsOf } from './operator-calls.js';
import { checkNodeStatus } from './status.js';

export const checkResetDone = record<ResetDone>({
  to: memberId,
  lost: list(
    record<ResetDone['lost'][number]>({
      member: memberId,
      state: oneOf('joining', 'in-sync', 'eligible'),
      silentMs: uint(),
    }),
    16,
  ),
});

const CALL_MS = 4000;
const STATUS_MS = 1000;

type ResetContext = Pick<CallContext, 'id' | 'driver' | 'peers' | 'own' | 'reset'>;

export async function answerReset(context: ResetContext, args: unknown): Promise<ResetDone> {
  const { driver, peers, reset } = context;
  const { acceptLoss, ...asked } = argumentsOf('shard-reset', args);
  if (!driver.leads) {
    const leader = peers.idOf(driver.leader);
    if (leader === undefined) throw noLeader();
    return checkResetDone(await peers.call(leader, 'shard-reset', { ...asked, acceptLoss }, CALL_MS), 'shard-reset');
  }
  if (asked.from !== undefined) {
    await reset(asked, false);
    await findCopy(context, asked.shard, asked.from);
  }
  return await reset(asked, acceptLoss);
}

/**
 * A copy has a name in the metadata a moment before it follows its owner. Only one that has followed can lead, and one
 * that has is kept for as long as the metadata has its name.
 */
async function findCopy({ id, own, peers, driver }: ResetContext, shard: number, from: string): Promise<void> {
  const dataPlane =
    from === id
      ? (await own()).dataPlane
      : checkNodeStatus(await peers.call(from, 'node-status', {}, STATUS_MS), from).dataPlane;
  if (dataPlane?.shards.find((s) => s.shard === shard)?.copy?.role === 'backup') return;
  const { copies = [] } = driver.state.copySets[shard] ?? {};
  throw noCopy(
    shard,
    from,
    copies.find((c) => c.member === from),
    [],
  );
}
