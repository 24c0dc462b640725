/**
 * The fabric's providers, which users know as transports: the one list of them in TypeScript, and what each can do.
 * Nobody asks for one by its name who means what it can do. native/fabric/fabric.h has the list for C;
 * native/node/client-binding.test.ts compares the two.
 */

interface Abilities {
  /** Leads to processes of the same host only: its addresses are `unix:/path`, and say which host. */
  readonly sameHost: boolean;
  /** Needs a device, which may be missing, or lost: its addresses are the device's own. */
  readonly needsDevice: boolean;
  /** A GET takes so little time that its caller may spin for it (FAB_CAN_SPIN of native/fabric/fabric.h). */
  readonly canSpin: boolean;
}

/** The better one first: where several lead to a server, the first of them is taken. */
const abilities = {
  shm: { sameHost: true, needsDevice: false, canSpin: true },
  verbs: { sameHost: false, needsDevice: true, canSpin: true },
  tcp: { sameHost: false, needsDevice: false, canSpin: false },
} as const satisfies Record<string, Abilities>;

export type Provider = keyof typeof abilities;

export const PROVIDERS = Object.keys(abilities) as readonly Provider[];

/** What a user may choose. */
export type TransportChoice = 'auto' | Provider;
export const TRANSPORT_CHOICES: readonly TransportChoice[] = ['auto', ...PROVIDERS];

export const isTransportChoice = (value: unknown): value is TransportChoice =>
  TRANSPORT_CHOICES.some((name) => name === value);
/**
 * Devices that one server may listen on. Each has regions of its own in the metadata, of which a shard has REGIONS_MAX:
 * with more devices shards would stay smaller. (FAB_DEVICES of native/fabric/fabric.h, which clients may have, is more.)
 */
export const DEVICES_MAX = 2;

export const isSameHost = (provider: Provider): boolean => abilities[provider].sameHost;
export const needsDevice = (provider: Provider): boolean => abilities[provider].needsDevice;
export const canSpin = (provider: Provider): boolean => abilities[provider].canSpin;
