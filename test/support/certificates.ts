/** Certificates of a cluster for tests, made as `farkv secrets` makes them: in a directory that goes with the test. */
import type { ExecutionContext } from 'ava';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseRoleName } from '../../core/role-name.js';
import type { Trust } from '../../net/tls.js';
import { fileOf, issue, makeAuthority } from '../../server/secrets/authority.js';

export class Certificates {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async make(t: Pick<ExecutionContext, 'teardown'>, cluster = 'prod'): Promise<Certificates> {
    const directory = mkdtempSync(join(tmpdir(), 'farkv-certificates-'));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    await makeAuthority(directory, cluster);
    return new Certificates(directory);
  }

  file(name: string): string {
    return join(this.directory, name);
  }

  /** By its role name. Returns the name of its file, without the ending. */
  async issue(uri: string, { hosts = ['localhost', '127.0.0.1'], days = 10, file = '' } = {}): Promise<string> {
    const name = parseRoleName(uri);
    if (name === undefined) throw new Error(`${uri} is no role name`);
    const path = file === '' ? fileOf(name).replace('*', 'any') : file;
    await issue(this.directory, { file: path, name, hosts, days });
    return path;
  }

  pem(file: string): { readonly cert: Buffer; readonly key: Buffer } {
    return { cert: readFileSync(this.file(`${file}.crt`)), key: readFileSync(this.file(`${file}.key`)) };
  }

  get ca(): Buffer {
    return readFileSync(this.file('ca.crt'));
  }

  /** To dial with: the certificate of this role name. */
  async trust(uri: string): Promise<{ readonly value: Trust }> {
    return { value: { ca: this.ca, ...this.pem(await this.issue(uri)) } };
  }
}
