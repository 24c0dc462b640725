/** `farkv top` over time: one look after the other, at the next server where the one that was asked is gone. */
import type { Look } from '../http/view.js';

/** Calls `use` with a way to look, through the first server that answers; throws when none does. */
export type WithServer = (use: (look: () => Promise<Look>) => Promise<void>) => Promise<void>;

/** Until the signal. A connection that breaks after it was of use is replaced; one that never was is an error. */
export async function watch(
  withServer: WithServer,
  show: (now: Look, before: Look | undefined) => void,
  pause: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let before: Look | undefined;
  while (!signal.aborted) {
    let looks = 0;
    try {
      await withServer(async (look) => {
        while (!signal.aborted) {
          const now = await look();
          show(now, before);
          before = now;
          await pause();
          looks += 1;
        }
      });
    } catch (error) {
      if (looks === 0) throw error;
    }
  }
}
