/** Rules of core/shards/index.ts: each, taken out, is found by the simulator or a test. The simulator ends at the first seed that finds it. */
import { always, drop, instead, never, without } from './checks/operators.mjs';
import { rows } from './checks/rows.mjs';

const full = (title) => ({ test: 'core/shards/full.test.ts', title });
const handover = (title) => ({ test: 'core/shards/handover.test.ts', title });
const backup = (title) => ({ test: 'core/shards/backup.test.ts', title });
const progress = (title) => ({ test: 'core/shards/progress.test.ts', title });
const promotion = (title) => ({ test: 'core/shards/promotion.test.ts', title });
const replicated = (simulation, from = 1) => ({ simulation, from, application: 'replicas', seeds: 20, steps: 10_000 });
const simulated = (simulation, from = 1) => ({ simulation, from, application: 'owners', seeds: 40, steps: 20_000 });
const WRONG_CALL = /: shards: /;
const TWO_OWNERS = /: owner leases: .* clients may rely on/;
const rules = (title) => ({ test: 'core/shards/shards.test.ts', title });

export const mutations = rows('shards', {
  'full-discarded': [
    instead('damaged', 'damaged || full'),
    full('a copy that is full and that changes need stays, with all that was acknowledged, and its server says so'),
  ],
  'follows-by-name': [
    without('epoch'),
    backup('a copy follows an owner anew that was replaced and is back, also where it sees both at once'),
  ],
  'handover-undecided': [
    without('set.config'),
    handover('an owner that does not know what came of its handover goes on in a later config only'),
  ],
  'deposed-discards': [
    without("'serving'"),
    handover('an owner that another one replaces goes on as a copy with what it has, if it was served'),
  ],
  'joining-given': [
    instead("=== 'in-sync'", "!== 'eligible'"),
    handover('an owner that has not served, or whose copies may lack something, hands nothing over'),
  ],
  'follows-unnamed': [
    without('local.named'),
    backup('a copy is copied, named, and follows its owner; nothing is asked for twice'),
  ],
  'followed-discarded': [
    instead('renounce(c, local)', "clear(c, local, 'again')"),
    backup('what has followed is thrown away only when the metadata has another name in its place'),
  ],
  'required-while-relied-on': [
    always(),
    progress('no copy is required before its owner serves: others may be relied on until then'),
  ],
  'config-untold': [without('set.config'), replicated(/: (copies in sync|seen values|copies): /)],
  'served-alone': [
    without('isAlone'),
    progress('a new shard is served when another server has a copy of it, and then counts its own'),
  ],
  'served-uncounted': [
    never(),
    progress('a new shard is served when another server has a copy of it, and then counts its own'),
  ],
  'served-unannounced': [without('incarnation'), simulated(WRONG_CALL)],
  'served-under-old-leases': [without('c.leasesOver'), simulated(TWO_OWNERS)],
  'epoch-over': [without('s.epoch'), rules('what is taken is closed at once, whatever is under way')],
  'opened-unnamed': [drop(), rules('nothing is opened before the metadata names this start of the server')],
  'opened-empty': [drop(), promotion('a shard whose copy is not here is not opened empty')],
});
