/**
 * `farkv shard reset`: an operator gives up copies of a shard that do not come back. The leader decides
 * (core/metadata/shard-loss.ts); whoever else is asked passes the call on.
 */
import { FarkvError } from '../core/errors.js';
import { memberId } from '../core/metadata/check-state.js';
import { noCopy } from '../core/metadata/shard-loss.js';
import { list, oneOf, record, uint } from '../core/protocol/check.js';
import type { CallContext } from './calls.js';
import type { ResetDone } from './metadata/leader-duties.js';
import { noLeader } from './metadata/no-leader.js';
import { argumentsOf } from './operator-calls.js';
import { checkNodeStatus, type NodeStatus } from './status.js';
import { presenceOf } from './values-elsewhere.js';

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
  const planned = await reset(asked, false);
  if (asked.from !== undefined) await findCopy(context, asked.shard, asked.from);
  if (!acceptLoss) return planned;
  await Promise.all(planned.lost.map(({ member }) => unlessRecovering(context, asked.shard, member)));
  return await reset(asked, true);
}

/**
 * A server that reads its disk votes, and answers, and holds no lease yet: it is silent by its lease, and is about to
 * come with its copies. One that does not answer at all is for the operator to judge.
 */
async function unlessRecovering({ id, own, peers }: ResetContext, shard: number, member: string): Promise<void> {
  const status: Pick<NodeStatus, 'leaseHeld' | 'values'> | undefined =
    member === id
      ? await own()
      : await peers.call(member, 'node-status', {}, STATUS_MS).then(
          (answer) => checkNodeStatus(answer, member),
          () => undefined,
        );
  // mutation: copies/reset-while-it-recovers
  if (status === undefined || presenceOf(status) !== 'recovering') return;
  const { bytes = 0, all = 0 } = status.values?.recovering ?? {};
  const share = all === 0 ? '' : ` (${Math.floor((100 * bytes) / all)} % read)`;
  throw new FarkvError(
    'ERR_BUSY',
    `shard ${shard} is not lost: ${member} reads its values from its disk${share}, and has a copy: wait for it`,
  );
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
