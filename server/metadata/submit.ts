/**
 * How a change that this server asks for gets to the leader. What is sent to a leader that stands still is read when it
 * goes on, and so is what a leader sends to others that stand still; who asked may have ended by then. A change that
 * leaves a shard's values to this server's copy would take them from those who have them, for nobody. So the leader is
 * asked first whether it is there, and is given such a change when a quorum has confirmed that it leads. Whoever ends
 * after that ends as an owner, or as the only one who has the values.
 */
import { FarkvError } from '../../core/errors.js';
import { decodeProposal, type Command } from '../../core/metadata/commands.js';
import type { MetadataDriver } from './driver.js';
import type { Peers } from './peers.js';
import { prepareRemoval } from './removal.js';

export interface SubmitOptions {
  readonly id: string;
  readonly driver: Pick<MetadataDriver, 'leads' | 'leader' | 'confirmLeader'> & LeaderDriver;
  readonly peers: Pick<Peers, 'idOf' | 'call'>;
  readonly timeoutMs: number;
}

/** Resolves when the leader took it; rejects when it did not, or may not have. */
export async function submit(options: SubmitOptions, bytes: Uint8Array, command: Command): Promise<void> {
  const { id, driver, peers, timeoutMs } = options;
  // mutation: metadata/taken-unconfirmed
  if (driver.leads && takesFromOthers(command)) await driver.confirmLeader();
  // An entry that nobody can read stops the group. Of others' the leader reads them first (server/calls.ts).
  const refusal = driver.leads ? take(driver, bytes, decodeProposal(bytes).command) : 'not-leader';
  if (refusal === undefined) return;
  const leader = peers.idOf(driver.leader);
  if (refusal !== 'not-leader' || leader === undefined || leader === id)
    throw new FarkvError('ERR_NO_LEADER', `the metadata group accepts no changes now (${refusal})`);
  if (takesFromOthers(command)) await peers.call(leader, 'leads', {}, timeoutMs);
  await peers.call(leader, 'propose', { bytes }, timeoutMs);
}

export type LeaderDriver = Pick<MetadataDriver, 'propose' | 'status' | 'state' | 'handOver'>;

/** At the leader: takes an entry, or says why not. Throws as prepareRemoval. */
export function take(driver: LeaderDriver, bytes: Uint8Array, command: Command): ReturnType<MetadataDriver['propose']> {
  if (command.t === 'server-remove') prepareRemoval(driver, command);
  return driver.propose(bytes);
}

/** The server that asks has the values of these shards afterwards, and others have them no more. */
function takesFromOthers(command: Command): boolean {
  return command.t === 'shards-promoted' || (command.t === 'copies-removed' && command.by !== undefined);
}
