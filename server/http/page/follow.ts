/**
 * Keeps a stream of events open. A browser connects again by itself when a stream breaks, but not when it was refused:
 * too many pages, a server that is not ready, a token that was changed.
 */
export interface Source {
  readonly readyState: number;
  addEventListener(type: 'error', listener: () => void): void;
}

const CLOSED = 2;
const AGAIN_MS = 5000;

export function follow(open: () => Source, againMs = AGAIN_MS): void {
  const source = open();
  source.addEventListener('error', () => {
    if (source.readyState === CLOSED) setTimeout(() => follow(open, againMs), againMs);
  });
}
