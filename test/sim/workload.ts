/**
 * What the simulated group is asked to do: proposals, linearizable reads, membership changes, hand-overs; and the goal
 * that it must reach when nothing goes wrong.
 */
import { isJoint, isVoter, membersOf, type Configuration, type MemberChange } from '../../core/raft/index.js';
import { proposalData } from './checker.js';
import type { SimMember } from './member.js';
import type { World } from './world.js';

const VOTERS_MAX = 7;
const MEMBERS_MAX = 10;

export class Workload {
  #nextProposal = 1;
  #nextRead = 1;

  constructor(
    private readonly world: World,
    private nextMember: number,
  ) {}

  work(calm: boolean): void {
    const { random, faults, members } = this.world;
    const up = [...members.values()].filter(
      (member) => member.node !== undefined && !member.paused && (!member.writing || faults.stepsDuringWrites),
    );
    if (up.length === 0) return;
    // Leaders first, mostly: others refuse. There can be several, of which at most one is not deposed.
    const leaders = up.filter(({ node }) => node!.role === 'leader');
    const member = leaders.length > 0 && random.below(8) > 0 ? random.pick(leaders) : random.pick(up);
    const what = random.below(1000);
    if (what < faults.changePermille && !calm) this.#change(member);
    else if (what < 250) this.#read(random.below(2) === 0 ? member : random.pick(up));
    else this.#propose(member, 1 + random.below(2));
    member.pump();
  }

  #propose(member: SimMember, count: number): void {
    const { random, application } = this.world;
    for (let i = 0; i < count; i++) if (!this.proposeBytes(member, application.command(random))) return;
  }

  /** False when the member does not take it. */
  proposeBytes(member: SimMember, command: Uint8Array): boolean {
    const { checker, counters } = this.world;
    const number = this.#nextProposal;
    const result = member.node!.propose(proposalData(number, command));
    if (!result.ok) return false;
    checker.proposed(number, result.index, result.term);
    checker.look(member, member.node!);
    this.#nextProposal++;
    counters.proposals++;
    return true;
  }

  #read(member: SimMember): void {
    const ctx = this.#nextRead++;
    this.world.checker.readAsked(member.id, ctx);
    if (member.node!.readIndex(ctx) !== undefined) this.world.checker.readAborted(ctx);
    else this.world.counters.reads++;
    member.pump();
  }

  transfer(member: SimMember): void {
    const leader = [...this.world.members.values()].find(({ node }) => node?.role === 'leader');
    if (leader?.node?.transferLeadership(member.id) !== undefined || leader === undefined) return;
    this.world.counters.transfers++;
    leader.pump();
  }

  #change(leader: SimMember): void {
    const { world } = this;
    this.#retireOne();
    const { node } = leader;
    if (node?.role !== 'leader') return;
    const { config } = node;
    if (isJoint(config)) return;
    const changes = this.#draw(config);
    if (changes.length === 0) return;
    const voters = new Set(config.voters);
    for (const { kind, id } of changes) {
      if (kind === 'voter') voters.add(id);
      else voters.delete(id);
    }
    const next = { voters: [...voters], outgoing: config.voters, learners: [] };
    const dead = (id: number) => world.damaged.has(id);
    if (voters.size > VOTERS_MAX || !world.survivable(next, dead)) return;
    const result = node.proposeChange({ changes, joint: world.random.below(4) === 0 });
    if (!result.ok) return;
    world.counters.configChanges++;
    world.trace?.note(`${leader.id} proposes ${changes.map(({ kind, id }) => `${kind} ${id}`).join(', ')}`);
    for (const { id } of changes) if (!world.members.has(id)) world.addMember(id, undefined);
    world.checker.look(leader, node);
  }

  #draw(config: Configuration): MemberChange[] {
    const { world } = this;
    const { random } = world;
    const lost = membersOf(config).find((id) => world.damaged.has(id) && (world.members.get(id)?.lost ?? true));
    if (lost !== undefined && random.below(2) === 0) return [{ kind: 'remove', id: lost }];
    const fresh = () => this.nextMember++;
    const roomy = world.members.size < MEMBERS_MAX;
    const voter = random.pick(config.voters);
    const learner = config.learners.length > 0 ? random.pick(config.learners) : undefined;
    // Small groups mostly grow: a lone voter has nothing to disagree about.
    const kind = config.voters.length <= 2 && random.below(4) > 0 ? random.below(4) : random.below(8);
    switch (kind) {
      case 0:
        return roomy ? [{ kind: 'learner', id: fresh() }] : [];
      case 1:
      case 2:
        return learner === undefined ? [] : [{ kind: 'voter', id: learner }];
      case 3:
        // An empty member that votes at once.
        return roomy ? [{ kind: 'voter', id: fresh() }] : [];
      case 4:
        return [{ kind: 'remove', id: voter }];
      case 5:
        return [{ kind: 'learner', id: voter }];
      case 6:
        return learner === undefined
          ? []
          : [
              { kind: 'remove', id: voter },
              { kind: 'voter', id: learner },
            ];
      default:
        return roomy
          ? [
              { kind: 'remove', id: voter },
              { kind: 'voter', id: fresh() },
              { kind: 'learner', id: fresh() },
            ]
          : [];
    }
  }

  /** Switches off a member that nobody can need any more; until then, removed members run on and disturb. */
  #retireOne(): void {
    const { world } = this;
    if (world.random.below(4) > 0) return;
    const needed = new Set(world.possibleConfigs().flatMap(membersOf));
    const free = [...world.members.values()].filter(({ id }) => !needed.has(id));
    if (free.length > 0) world.retire(world.random.pick(free));
  }

  /** A predicate that becomes true when the group has agreed on something new and all its members have applied it. */
  goal(): () => boolean {
    const { world } = this;
    const after = world.checker.committed;
    const firstRead = this.#nextRead;
    let calls = 0;
    return () => {
      // The look at all members is not for every event.
      if ((++calls & 63) !== 0) return false;
      const leader = [...world.members.values()].find(({ node }) => node?.role === 'leader');
      const node = leader?.node;
      if (node === undefined || node.commit <= after + 3 || isJoint(node.config)) return false;
      const config = world.checker.committedConfig;
      if (membersOf(node.config).join() !== membersOf(config).join() || !isVoter(config, node.id)) return false;
      const goalIndex = after + 3;
      return (
        membersOf(config).every(
          (id) => world.damaged.has(id) || (world.members.get(id)?.node?.applied ?? 0) >= goalIndex,
        ) && world.checker.oldestRead >= firstRead
      );
    };
  }
}
