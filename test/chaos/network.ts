/**
 * A network of hosts on one machine: a namespace for each, joined by a bridge with the namespace that this process is
 * in. Needs root.
 *
 *   host i   namespace NAME-i, eth0 10.231.N.i, MAC 02:fa:N:0:0:i  ---veth--- NAMEvi --- bridge NAMEbr, 10.231.N.254
 *                                                                  (here)
 *
 * Who sends to which MAC is written down by hand in each host's neighbour table, never asked for. So a cut is a wrong
 * MAC: what `from` sends to `to` leaves the host and reaches nobody, silently, and what comes the other way still
 * arrives. It costs no packet filter, which not every kernel has. This process reaches every host always.
 *
 * Processes are put into a host by nsenter and not by `ip netns exec`, which would also give each one its own view of
 * the files: then shared memory would not be offered between them (native/host.ts).
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

/** From one host to another. */
export type Way = readonly [number, number];

/** True when this process may make namespaces. */
export function canMakeNetworks(): boolean {
  const name = `farkv-probe-${process.pid}`;
  try {
    ip('netns', 'add', name);
    ip('netns', 'delete', name);
    return true;
  } catch {
    return false;
  }
}

function ip(...words: readonly string[]): string {
  return execFileSync('ip', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export class Network {
  readonly #name: string;
  readonly #subnet: number;
  readonly hosts: number;
  /** Namespaces outlive their processes: they go when this process ends before `remove`, too. */
  readonly #atExit = (): void => this.remove();

  private constructor(name: string, subnet: number, hosts: number) {
    this.#name = name;
    this.#subnet = subnet;
    this.hosts = hosts;
    process.once('exit', this.#atExit);
  }

  /** Hosts are numbered from 1 to `hosts`. To be removed by `remove`, whatever happens. */
  static make(hosts: number): Network {
    const used = ip('-o', 'address', 'show');
    let subnet = 1 + (process.pid % 250);
    while (used.includes(` 10.231.${subnet}.`)) subnet = 1 + (subnet % 250);
    const network = new Network(`fk${process.pid.toString(36)}-${subnet.toString(36)}`, subnet, hosts);
    try {
      network.#make();
    } catch (error) {
      network.remove();
      throw error;
    }
    return network;
  }

  address(host: number): string {
    return `10.231.${this.#subnet}.${host}`;
  }

  /** What a command line begins with that is to run on the host. The process keeps its id. */
  launcher(host: number): readonly string[] {
    return ['nsenter', `--net=/run/netns/${this.#namespace(host)}`, '--'];
  }

  /**
   * From when this resolves nothing that `from` sends reaches `to`, on each of these ways. The caller's event loop goes
   * on.
   */
  async cut(ways: readonly Way[]): Promise<void> {
    await this.#neighbours(ways, () => this.#mac(0xff_ff));
  }

  async heal(ways: readonly Way[]): Promise<void> {
    await this.#neighbours(ways, (to) => this.#mac(to));
  }

  remove(): void {
    process.off('exit', this.#atExit);
    for (let host = 1; host <= this.hosts; host++) {
      // The other end of its pair is gone with the namespace, but not at once.
      tryTo(() => ip('link', 'delete', `${this.#name}v${host}`));
      tryTo(() => ip('netns', 'delete', this.#namespace(host)));
    }
    tryTo(() => ip('link', 'delete', `${this.#name}br`));
  }

  #make(): void {
    const bridge = `${this.#name}br`;
    ip('link', 'add', bridge, 'address', this.#mac(254), 'type', 'bridge');
    ip('address', 'add', `${this.address(254)}/24`, 'dev', bridge);
    ip('link', 'set', bridge, 'up');
    for (let host = 1; host <= this.hosts; host++) {
      const namespace = this.#namespace(host);
      ip('netns', 'add', namespace);
      ip(
        'link',
        'add',
        `${this.#name}v${host}`,
        'type',
        'veth',
        'peer',
        'name',
        'eth0',
        'address',
        this.#mac(host),
        'netns',
        namespace,
      );
      ip('link', 'set', `${this.#name}v${host}`, 'master', bridge, 'up');
      ip('-n', namespace, 'address', 'add', `${this.address(host)}/24`, 'dev', 'eth0');
      ip('-n', namespace, 'link', 'set', 'lo', 'up');
      ip('-n', namespace, 'link', 'set', 'eth0', 'up');
      ip('neigh', 'replace', this.address(host), 'lladdr', this.#mac(host), 'dev', bridge, 'nud', 'permanent');
      for (const other of [254, ...Array.from({ length: this.hosts }, (_, i) => i + 1)]) {
        if (other !== host) this.#neighbour(host, other, this.#mac(other));
      }
    }
  }

  #neighbour(at: number, of: number, mac: string): void {
    ip(
      '-n',
      this.#namespace(at),
      'neigh',
      'replace',
      this.address(of),
      'lladdr',
      mac,
      'dev',
      'eth0',
      'nud',
      'permanent',
    );
  }

  /** One process for each host that sends, all at the same time. */
  async #neighbours(ways: readonly Way[], macOf: (to: number) => string): Promise<void> {
    const lines = new Map<number, string[]>();
    for (const [from, to] of ways)
      if (from !== to)
        lines.set(from, [
          ...(lines.get(from) ?? []),
          `neigh replace ${this.address(to)} lladdr ${macOf(to)} dev eth0 nud permanent\n`,
        ]);
    await Promise.all(
      [...lines].map(async ([from, text]) => {
        const child = spawn('ip', ['-n', this.#namespace(from), '-batch', '-'], {
          stdio: ['pipe', 'ignore', 'inherit'],
        });
        child.stdin.end(text.join(''));
        const [code] = (await once(child, 'close')) as [number | null];
        if (code !== 0)
          throw new Error(`ip could not change the neighbours of host ${from}: exit code ${String(code)}`);
      }),
    );
  }

  #namespace(host: number): string {
    return `${this.#name}-${host}`;
  }

  #mac(host: number): string {
    const byte = (n: number): string => n.toString(16).padStart(2, '0');
    return `02:fa:${byte(this.#subnet)}:00:${byte(host >> 8)}:${byte(host & 0xff)}`;
  }
}

function tryTo(work: () => unknown): void {
  try {
    work();
  } catch {
    // It was not there.
  }
}
