/**
 * ServerOptions: what a program may give startServer(), derived from the table of options (options.ts). So each option
 * of `farkv server` is one of startServer(), under its name in camelCase. Not for: how values are read (option-values.ts).
 */
import type { CamelCase, OptionName, OptionSpec, SERVER_OPTIONS } from './options.js';

/** What a program may give instead of text, where that is more than the kind of the option says. */
interface Maps {
  peers: Readonly<Record<string, string | readonly string[]>>;
  tenants: Readonly<Record<string, TenantOptions>>;
}

/** True or false for a flag, text or several for a list, a number or text for a number, else one of the option's texts. */
type Given<S> =
  S extends OptionSpec<unknown, 'flag'>
    ? boolean
    : S extends OptionSpec<unknown, 'list'>
      ? string | readonly string[]
      : S extends OptionSpec<infer T, 'text'>
        ? T extends number
          ? number | string
          : T
        : never;

/** The value of one option as a program gives it. */
export type OptionInput<N extends OptionName> =
  Given<(typeof SERVER_OPTIONS)[N]> | (N extends keyof Maps ? Maps[N] : never);

type Derived = { readonly [N in OptionName as CamelCase<N>]?: OptionInput<N> };

/** A tenant beside the default one. */
export interface TenantOptions {
  readonly shards: number;
  /** Of its clients that read and write: this, or a file. */
  readonly token?: string;
  readonly tokenFile?: string;
  readonly readerTokenFile?: string;
  readonly maxClients?: number;
}

/**
 * The options of `farkv server` in camelCase; `farkv server --help` says what each means, its default and its limits.
 * Sizes may be written `'64mb'`, times `'2s'`. Environment variables (FARKV_*) count where an option is not given,
 * unless `env` is {}.
 */
export interface ServerOptions extends Derived {
  /** A YAML or JSON file with more options. */
  readonly config?: string;
  /** Server ids to the addresses of their ports between servers; the same for every server of the cluster. */
  readonly peers?: OptionInput<'peers'>;
  /** Addresses of servers of an existing cluster that this server joins. */
  readonly join?: OptionInput<'join'>;
  /** Default: replicated with three servers or more. */
  readonly level?: OptionInput<'level'>;
  /** When a server of level durable answers a change: 'always', or a time such as '50ms'. */
  readonly sync?: OptionInput<'sync'>;
  /** The failure domain of this server, such as a rack. Default: its host. */
  readonly zone?: OptionInput<'zone'>;
  /** A witness votes, and keeps no values. */
  readonly witness?: OptionInput<'witness'>;
  /** Directory of the metadata log and of durable values. Default: a temporary one, removed at the end. */
  readonly dataDir?: OptionInput<'data-dir'>;
  /** Bytes for tables, or a size such as '8gb'. */
  readonly memory?: OptionInput<'memory'>;
  /** A directory of token files and certificates, as `farkv secrets init` makes it. */
  readonly secrets?: OptionInput<'secrets'>;
  /** The token of clients, who read and write. Tokens go by role; a file has one a line. */
  readonly token?: OptionInput<'token'>;
  /** By name; or as --tenants takes them. */
  readonly tenants?: OptionInput<'tenants'>;
}
