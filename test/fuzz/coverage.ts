/** Which blocks of the project's code were run, as V8 counts them (precise coverage). One for a process. */
import { Session } from 'node:inspector';
import { fileURLToPath } from 'node:url';
import { inRepository } from '../../bench/repository.js';

const WATCHED = ['core', 'net', 'server', 'client'].map((folder) => inRepository('dist', folder, ''));

interface FileBlocks {
  readonly known: Set<string>;
  readonly reached: Set<string>;
}

export class Coverage {
  readonly #session = new Session();
  /** By the file's path below dist/. */
  readonly #files = new Map<string, FileBlocks>();

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** What was run since the last call: blocks that none had reached before, and all. */
  take(): { readonly fresh: ReadonlySet<string>; readonly all: ReadonlySet<string> } {
    const fresh = new Set<string>();
    const all = new Set<string>();
    // The answer comes from inside the call.
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error;
      for (const { url, functions } of result) {
        const path = url.startsWith('file:') ? fileURLToPath(url) : '';
        if (!WATCHED.some((folder) => path.startsWith(folder)) || path.includes('.test.')) continue;
        const file = this.#file(path.slice(inRepository('dist', '').length));
        for (const { ranges } of functions) {
          for (const { startOffset, endOffset, count } of ranges) {
            const block = `${startOffset}-${endOffset}`;
            file.known.add(block);
            if (count === 0) continue;
            const name = `${path} ${block}`;
            all.add(name);
            if (!file.reached.has(block)) fresh.add(name);
            file.reached.add(block);
          }
        }
      }
    });
    return { fresh, all };
  }

  #file(path: string): FileBlocks {
    const found = this.#files.get(path) ?? { known: new Set(), reached: new Set() };
    this.#files.set(path, found);
    return found;
  }

  /** Blocks reached and known, by file. */
  get files(): readonly { readonly path: string; readonly reached: number; readonly known: number }[] {
    return [...this.#files]
      .map(([path, { known, reached }]) => ({ path, reached: reached.size, known: known.size }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  }
}
