/**
 * farkv by its SDK. Properties: farkv.servers, farkv.token, farkv.transport, farkv.strict, farkv.namespace,
 * farkv.connecttimeoutms, farkv.timeoutms, farkv.unavailableafterms, and farkv.read: which call reads: getInto (the
 * default: into one buffer a lane, without a promise where the transport can), get (a Buffer by a promise) or getSync.
 */
import type { Client, BufferValue } from '../../../client/index.js';
import { FarkvError } from '../../../core/errors.js';
import type { Database, DatabaseOptions, Facts, MaybePromise } from './database.js';
import { choiceSetting, databaseSettings, numberSetting } from './settings.js';
import { POLLING } from '../../../core/polling.js';
import { TRANSPORT_CHOICES } from '../../../core/providers.js';

const DEFAULTS = {
  'farkv.servers': '127.0.0.1:7400',
  'farkv.token': '',
  'farkv.ca': '',
  'farkv.cert': '',
  'farkv.key': '',
  'farkv.transport': 'auto',
  'farkv.strict': 'false',
  'farkv.namespace': '0',
  'farkv.timeoutms': '5000',
  'farkv.unavailableafterms': '3000',
  'farkv.connecttimeoutms': '10000',
  'farkv.read': 'getInto',
  'farkv.polling': 'auto',
};

/** The record that a lane read last; a new view is made only when the length changes. */
class Lane {
  buffer: Buffer;
  view: Buffer;

  constructor(bytes: number) {
    this.buffer = Buffer.alloc(bytes);
    this.view = this.buffer;
  }

  record(length: number | undefined): Buffer | undefined {
    if (length === undefined) return undefined;
    if (this.view.length !== length) this.view = this.buffer.subarray(0, length);
    return this.view;
  }
}

export class FarkvDatabase implements Database {
  readonly name = 'farkv';
  readonly #settings;
  readonly #read: 'getInto' | 'get' | 'getSync';
  readonly #lanes: readonly Lane[];
  #client: Client<BufferValue, Buffer> | undefined;

  constructor({ properties, lanes, parameters }: DatabaseOptions) {
    this.#settings = databaseSettings(properties, 'farkv.', DEFAULTS);
    this.#read = choiceSetting(this.#settings, 'farkv.read', ['getInto', 'get', 'getSync']);
    // Fields may be as long as fieldlength says, and each has up to five bytes of directory.
    const most = parameters.fieldCount * (parameters.fieldLength + 5) + 5;
    this.#lanes = Array.from({ length: lanes }, () => new Lane(most));
  }

  async init(): Promise<void> {
    const { connect } = await import('../../../client/index.js');
    const s = this.#settings;
    const [caFile, certFile, keyFile] = [s['farkv.ca'], s['farkv.cert'], s['farkv.key']];
    const tls = { ...(caFile === '' ? {} : { caFile }), ...(certFile === '' ? {} : { certFile, keyFile }) };
    this.#client = await connect({
      servers: s['farkv.servers'],
      ...(s['farkv.token'] === '' ? {} : { token: s['farkv.token'] }),
      ...(caFile === '' && certFile === '' ? {} : { tls }),
      transport: choiceSetting(s, 'farkv.transport', TRANSPORT_CHOICES),
      strict: choiceSetting(s, 'farkv.strict', ['true', 'false']) === 'true',
      namespace: numberSetting(s, 'farkv.namespace', 0, 65_535),
      timeoutMs: numberSetting(s, 'farkv.timeoutms', 1, 2 ** 31 - 1),
      unavailableAfterMs: numberSetting(s, 'farkv.unavailableafterms', 1, 2 ** 31 - 1),
      connectTimeoutMs: numberSetting(s, 'farkv.connecttimeoutms', 1, 2 ** 31 - 1),
      polling: choiceSetting(s, 'farkv.polling', POLLING),
    });
  }

  read(key: string, lane: number): MaybePromise<Uint8Array | undefined> {
    const client = this.#connected;
    if (this.#read === 'get') return client.get(key);
    const at = this.#lanes[lane];
    if (at === undefined) throw new FarkvError('ERR_INTERNAL', 'a lane that was not announced');
    if (this.#read === 'getSync') return at.record(client.getIntoSync(key, at.buffer));
    const length = client.getInto(key, at.buffer);
    return length instanceof Promise ? length.then((n) => at.record(n)) : at.record(length);
  }

  insert(key: string, record: Buffer): Promise<void> {
    return this.#connected.put(key, record);
  }

  update(key: string, record: Buffer): Promise<void> {
    return this.#connected.put(key, record);
  }

  facts(): Facts {
    const stats = this.#connected.stats();
    const providers = new Set(stats.transports.filter((t) => t.connected).map((t) => t.provider ?? 'none'));
    return {
      texts: { Provider: [...providers].join('+'), ReadCall: this.#read },
      counts: { Gets: stats.gets, Reads: stats.reads, Retries: stats.retries, TwoSidedGets: stats.twoSidedGets },
      ratios: { ReadsPerGet: ['Reads', 'Gets'] },
    };
  }

  async cleanup(): Promise<void> {
    await this.#connected.close();
  }

  get #connected(): Client<BufferValue, Buffer> {
    if (this.#client === undefined) throw new FarkvError('ERR_CLOSED', 'not connected');
    return this.#client;
  }
}
