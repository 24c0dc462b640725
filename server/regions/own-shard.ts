/** What a server knows of a shard that is its own, for as long as its data plane has it. */
export interface OwnShard {
  readonly shard: number;
  readonly epoch: number;
  readonly incarnation: bigint;
  readonly memoryBytes: number;
  /** The data plane has it. */
  opened: boolean;
  serving: boolean;
  /** The data plane's layout changed since it was last told to the metadata. */
  dirty: boolean;
  telling: boolean;
  abandoned: boolean;
  /** Being given to another server. */
  releasing: boolean;
  /** The openShard call; it is waited for before closeShard. */
  opening: Promise<unknown>;
  closing: Promise<void> | undefined;
}

/** Not open yet. */
export function ownShard(which: Pick<OwnShard, 'shard' | 'epoch' | 'incarnation' | 'memoryBytes'>): OwnShard {
  return { ...which, opened: false, serving: false, dirty: false, telling: false, abandoned: false, releasing: false, opening: Promise.resolve(), closing: undefined };
}
