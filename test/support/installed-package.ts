/**
 * A project in an empty folder that has farkv installed as npm does it: the files that `npm pack` takes, with the addon
 * that was built here, and links to the packages that farkv and the project use. For tests of how the package is
 * imported; scripts/check-package.sh installs it with npm.
 */
import type { ExecutionContext } from 'ava';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const inRepository = (...path: readonly string[]): string => join(ROOT, ...path);

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Project {
  readonly directory: string;

  /** `packages`: what the project uses beside farkv, of the repository's node_modules. */
  constructor(t: ExecutionContext, packages: readonly string[] = []) {
    this.directory = mkdtempSync(join(tmpdir(), 'farkv-project-'));
    t.teardown(() => rmSync(this.directory, { recursive: true }));
    this.write('package.json', '{"name":"app","private":true}');
    const packed = spawnSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', this.directory], {
      cwd: inRepository('.'),
      encoding: 'utf8',
    });
    const tarball = readdirSync(this.directory).find((name) => name.endsWith('.tgz'));
    if (tarball === undefined) throw new Error(`npm pack: ${packed.stderr}`);
    const farkv = this.path('node_modules/farkv');
    mkdirSync(farkv, { recursive: true });
    spawnSync('tar', ['xzf', this.path(tarball), '--strip-components=1', '-C', farkv]);
    mkdirSync(join(farkv, 'build/Release'), { recursive: true });
    cpSync(inRepository('build/Release/farkv.node'), join(farkv, 'build/Release/farkv.node'));
    const { dependencies } = JSON.parse(readFileSync(inRepository('package.json'), 'utf8')) as {
      readonly dependencies: Readonly<Record<string, string>>;
    };
    for (const name of [...Object.keys(dependencies), ...packages]) {
      mkdirSync(dirname(this.path('node_modules', name)), { recursive: true });
      symlinkSync(inRepository('node_modules', name), this.path('node_modules', name));
    }
  }

  path(...parts: readonly string[]): string {
    return join(this.directory, ...parts);
  }

  write(name: string, text: string): string {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), text);
    return this.path(name);
  }

  /** Runs Node.js in the project. */
  node(...args: readonly string[]): Ran {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: this.directory, encoding: 'utf8' });
    return { code: status, stdout, stderr };
  }

  /** Runs a program of the repository's node_modules, by the path of its file there. */
  tool(file: string, ...args: readonly string[]): Ran {
    return this.node(inRepository('node_modules', file), ...args);
  }
}
