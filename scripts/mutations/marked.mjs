/** What must not be missing where copies acknowledge what their disks do not have yet (docs/durable-cluster.md). */
import { inFile } from './checks/in-file.mjs';

const marked = (title) => ({ test: 'core/metadata/marked.test.ts', title });
const lives = (title) => ({ test: 'core/shards/recovered.test.ts', title });
const UNMARKED = marked('a marked copy does not lead while another one in sync has no mark, however long that takes');
const LONGEST = marked('of marked copies only the longest log leads, and only those that are as long stay in sync');
const ANEW = marked('what joins begins anew when its server has acknowledged too much, or a marked copy leads');
const LEADING = marked(
  'a marked copy is in sync by leading alone: its owner takes it away, and believes nothing of it',
);
const OWNERS = marked('a whole copy of a durable shard is taken away by its owner alone');
const TAKES = lives('an owner takes a copy away when its own disk has what was answered, in that config');
const told = (title) => ({ test: 'server/values-log.test.ts', title });

export const mutations = [
  ...inFile('core/metadata/reduce-promotions.ts', [
    [
      'marked: a mark goes with the next start',
      marked('a mark stays though the next start of its server ended in order'),
      'recovered.early === true || isMarked(present)',
      'recovered.early === true',
    ],
    [
      'marked: a copy without a mark goes because a marked one is there',
      marked('a copy without a mark that did not come back stays where only a marked one is left'),
      'mayCome(state, c) && hasAsMuch(c, present)',
      'mayCome(state, c)',
    ],
    [
      'marked: a copy that joins goes on though it may lack what it has acknowledged',
      ANEW,
      '    if (early !== undefined && !isWhole(present)) return undefined;\n',
      '',
    ],
    [
      'marked: a shard is given to a marked copy that may lack something',
      UNMARKED,
      'if (heir === undefined || !mayLead(set, heir)) return undefined;',
      'if (heir === undefined || !mayLead({ copies: [] }, heir)) return undefined;',
    ],
  ]),
  ...inFile('core/metadata/copy-sets.ts', [
    [
      'marked: a shorter log leads',
      LONGEST,
      '&& !isLonger(c.recovered, has)',
      '&& (true || !isLonger(c.recovered, has))',
    ],
    [
      'marked: the longest log goes where a shorter one is left',
      marked('the longest log is kept where its disk could not be read once, and only a shorter one is left'),
      'other.recovered !== undefined && !isLonger(other.recovered, copy.recovered)',
      'other.recovered !== undefined',
    ],
    [
      'marked: a longer log of an earlier epoch leads',
      marked('a log of a later epoch is longer'),
      'epoch > has.epoch || (epoch === has.epoch && lsn > has.lsn)',
      'epoch >= 0 && lsn > has.lsn',
    ],
    [
      'marked: copies with less stay in sync',
      LONGEST,
      'isMarked(heir) && has?.epoch === leads?.epoch && has?.lsn === leads?.lsn',
      'isMarked(heir) && has?.epoch === leads?.epoch',
    ],
    [
      'marked: copies that join go on with what is lost',
      ANEW,
      'isWhole(copy) || !isMarked(heir)',
      'true || !isMarked(heir)',
    ],
    [
      'marked: marked copies count for new changes',
      marked('marked copies do not count as in sync: an eligible one with all is not forgotten for them'),
      "c.state === 'in-sync' && !isMarked(c)).length",
      "c.state === 'in-sync').length",
    ],
    [
      'marked: the last copy without a mark goes when it is damaged',
      marked('a damaged copy stays where the others are marked'),
      'isWhole(one) && (isMarked(copy) || !isMarked(one))',
      'isWhole(one)',
    ],
    [
      'marked: a whole copy of a durable shard goes without its owner',
      OWNERS,
      "return level !== 'durable' && copy.state",
      'return level !== undefined && copy.state',
    ],
  ]),
  ...inFile('core/metadata/reduce-copies.ts', [
    [
      'marked: an owner has a marked copy be in sync',
      LEADING,
      "if (isMarked(present)) return refused('ERR_BUSY'",
      "if (isMarked(present) && c.lsn < 0) return refused('ERR_BUSY'",
    ],
    [
      'marked: a marked copy that is removed goes on with what it has',
      LEADING,
      "if (copy.state !== 'in-sync' || isMarked(copy)) return 'gone';",
      "if (copy.state !== 'in-sync') return 'gone';",
    ],
    [
      'marked: what is one too many joins again',
      lives('of a durable shard the owner takes away what is one too many, and it does not join again'),
      "removed.surplus === true ? 'gone' : stateAfter",
      'stateAfter',
    ],
  ]),
  ...inFile('core/metadata/copy-policy.ts', [
    [
      'marked: the leader gives a shard to a marked copy before the others are back',
      UNMARKED,
      '    .filter((c) => mayLead(set, c))\n',
      '',
    ],
    [
      'marked: the leader takes a whole copy of a durable shard away',
      OWNERS,
      "(level === 'durable' ? undefined : surplus(",
      "(level === 'cache' ? undefined : surplus(",
    ],
  ]),
  ...inFile('core/shards/backup.ts', [
    [
      'marked: a marked copy follows its owner',
      lives('a marked copy follows nobody and asks for nothing, until it is made anew or leads'),
      '  if (isMarked(entry)) return;\n',
      '',
    ],
  ]),
  ...inFile('core/shards/companions.ts', [
    [
      'marked: an owner waits for a marked copy',
      lives('an owner has a marked copy removed at once'),
      '  removeMarked(c, life, set);\n',
      '  void removeMarked;\n',
    ],
    [
      'marked: an owner has a copy taken away before its own disk has all',
      TAKES,
      'if (isDurable(c, shard)) c.askFor(life, leaving',
      'if (!isDurable(c, shard)) c.askFor(life, leaving',
    ],
    [
      'marked: a copy is taken away in a config in which its owner has answered early',
      TAKES,
      'else if (copies.config === leaving.config)',
      'else if (copies.config !== undefined)',
    ],
    [
      'marked: nobody takes away what is one too many of a durable shard',
      lives('of a durable shard the owner takes away what is one too many, and it does not join again'),
      '  removeSurplus(c, life, set);\n',
      '  void removeSurplus;\n',
    ],
  ]),
  ...inFile('server/values-log.ts', [
    [
      'marked: a start does not say what the last one left',
      told('copies that are told have the mark of their start'),
      'const mark = early ? ({ early: true } as const) : {};',
      'const mark = early ? {} : {};',
    ],
    [
      'marked: what could not be read counts as told',
      told('copies that are told have the mark of their start'),
      'f.whole ? [`${f.shard}',
      'f.copy ? [`${f.shard}',
    ],
  ]),
  ...inFile('server/early-mark.ts', [
    [
      'marked: the mark goes though the metadata was not told',
      told('a start knows whether the last one ended in order, until the metadata knows it'),
      'if (isSynced && this.#isTold)',
      'if (isSynced)',
    ],
    [
      'marked: the mark goes though a copy could not be read',
      told('what could not be read is marked by the start that can read it'),
      'if (!this.found || !all) return;',
      'if (!this.found) return;',
    ],
    [
      'marked: the mark goes though the log has failed',
      told('a mark stays where the log failed'),
      'if (isSynced && this.#isTold)',
      'if (this.#isTold)',
    ],
  ]),
  ...inFile('server/node.ts', [
    [
      'marked: a server acknowledges early without a mark',
      {
        test: 'test/integration/early.long.test.ts',
        title: 'a server that ends in order comes back with its copies, and status says what is promised',
      },
      '    early?.begins(syncMs);\n',
      '',
    ],
  ]),
];
