/// <reference lib="dom" />
/**
 * Keeps a stream of server-sent events open. It is read by fetch, since an EventSource does not say with what it was
 * refused. A stream that has ended or was refused is opened again, but not where it was refused for who asks: wrong tokens
 * are counted by the server. The browser has asked for another token by then, or the reader does so by loading the page
 * again.
 */

/** With what a stream was refused. */
export interface Refusal {
  readonly status: number;
  /** Of farkv; empty where another program has answered. */
  readonly text: string;
}

export interface Follower {
  readonly heard: (event: string, data: string) => void;
  /** Undefined: the connection broke, or could not be made. */
  readonly ended: (refusal: Refusal | undefined) => void;
}

const AGAIN_MS = 2000;
const FOR_WHO_ASKS = [401, 403, 429];
const EVENT = /^event: ([^\n]*)\ndata: ([^\n]*)$/;

export const isFinal = (refusal: Refusal | undefined): boolean =>
  refusal !== undefined && FOR_WHO_ASKS.includes(refusal.status);

/** Resolves when it was refused for who asks. */
export async function follow(url: string, follower: Follower, againMs = AGAIN_MS): Promise<void> {
  for (;;) {
    const refusal = await read(url, follower);
    follower.ended(refusal);
    if (isFinal(refusal)) return;
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** Until the stream ends. */
async function read(url: string, { heard }: Follower): Promise<Refusal | undefined> {
  try {
    const response = await fetch(url, { cache: 'no-store', headers: { Accept: 'text/event-stream' } });
    if (!response.ok || response.body === null) {
      const isOurs = response.headers.get('content-type')?.startsWith('text/plain') === true;
      if (!isOurs) await response.body?.cancel();
      return { status: response.status, text: isOurs ? (await response.text()).trim() : '' };
    }
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    let text = '';
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const parts = (text + decoder.decode(part.value, { stream: true })).split('\n\n');
      text = parts.pop() ?? '';
      for (const one of parts) {
        const [, event, data] = EVENT.exec(one) ?? [];
        // What the reader of the page does wrong is no end of the stream.
        if (event !== undefined && data !== undefined) queueMicrotask(() => heard(event, data));
      }
    }
  } catch {
    // The connection.
  }
  return undefined;
}
