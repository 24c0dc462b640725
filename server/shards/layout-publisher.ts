/**
 * Tells the metadata how a shard's segments changed, one change at a time; what changes meanwhile, and in the pause
 * after each, is told together. Nobody waits for it: an owner tells its layout to whoever asks.
 */
import type { Command } from '../../core/metadata/commands.js';
import type { Shard } from '../../core/metadata/state.js';
import type { DataPlane } from '../../native/data-plane.js';
import { codeOf, describeError, type Log } from '../log.js';
import { layoutDelta } from './layout-delta.js';

export interface LayoutPublisherOptions {
  readonly dataPlane: Pick<DataPlane, 'layout'>;
  /** The shard as the metadata has it, while that is what is open here. */
  readonly known: (shard: number) => Shard | undefined;
  readonly propose: (command: Command) => Promise<'applied' | 'look again'>;
  readonly sleep: (ms: number) => Promise<void>;
  readonly log: Log;
}

/**
 * A table that fills asks for many segments a second. Each change that is told is written by every server and sent to
 * every client, with all regions of the shard.
 */
const PAUSE_MS = 250;

export class LayoutPublisher {
  readonly #options: LayoutPublisherOptions;
  /** Shards whose layout changed since it was last told. */
  readonly #dirty = new Set<number>();
  readonly #telling = new Set<number>();
  #closed = false;

  constructor(options: LayoutPublisherOptions) {
    this.#options = options;
  }

  changed(shard: number): void {
    this.#dirty.add(shard);
    if (!this.#telling.has(shard)) void this.#tell(shard);
  }

  close(): void {
    this.#closed = true;
  }

  async #tell(shard: number): Promise<void> {
    const { dataPlane, known, propose, sleep, log } = this.#options;
    this.#telling.add(shard);
    try {
      while (this.#dirty.has(shard) && !this.#closed) {
        this.#dirty.delete(shard);
        const before = known(shard);
        if (before === undefined) return;
        const layout = await dataPlane.layout(shard);
        if (layout.layoutEpoch === before.layoutEpoch) continue;
        const outcome = await propose(layoutDelta(before, layout));
        // Refused or unknown: the difference is taken anew from what the metadata has now.
        if (outcome !== 'applied') this.#dirty.add(shard);
        await sleep(PAUSE_MS);
      }
    } catch (error) {
      if (!this.#closed && known(shard) !== undefined)
        log.warn(`the layout of shard ${shard} could not be told: ${describeError(error)}`, {
          event: 'layout-not-told',
          shard,
          ...codeOf(error),
        });
    } finally {
      this.#telling.delete(shard);
    }
  }
}
