/**
 * The last hour of what the charts show, for pages that are opened after what they are to show: a sample per SAMPLE_MS,
 * of the rates and times since the sample before. Not for: the looks themselves (events.ts).
 *
 * Invariants: at most SAMPLES are kept, in the order of their times. Of the last look only what the next sample is
 * compared with is kept, and so nothing per shard.
 */
import { SAMPLE_MS, SAMPLES } from './bounds.js';
import { sampleOf, type Sample } from './page/figures.js';
import { viewOf, type Look } from './view.js';

/** Looks come a little early or late. */
const EARLY = 0.95;

export class History {
  readonly #everyMs: number;
  #samples: Sample[] = [];
  #from: Look | undefined;

  constructor(everyMs = SAMPLE_MS) {
    this.#everyMs = everyMs;
  }

  /** Each look. */
  take(now: Look): void {
    const passedMs = now.atMs - (this.#from?.atMs ?? -Infinity);
    if (passedMs >= 0 && passedMs < EARLY * this.#everyMs) return;
    // A clock that was set back begins anew.
    if (passedMs < 0) this.#samples = this.#samples.filter(([atMs]) => atMs < now.atMs);
    else if (this.#from !== undefined) this.#samples.push(sampleOf(viewOf(now, this.#from)));
    if (this.#samples.length > SAMPLES) this.#samples.shift();
    this.#from = comparable(now);
  }

  get samples(): readonly Sample[] {
    return this.#samples;
  }
}

/** What viewOf takes of the look before, and turnsOf of its status: of thousands of shards and tables nothing. */
export function comparable({ atMs, status }: Look): Look {
  const members = status.members.map(({ node, ...member }) => {
    if (node?.dataPlane === undefined) return { ...member, ...(node === undefined ? {} : { node }) };
    return { ...member, node: { ...node, dataPlane: { ...node.dataPlane, shards: [] } } };
  });
  return { atMs, status: { ...status, members, shards: [] } };
}
