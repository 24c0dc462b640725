/** Threads of this process that stand still, as one does that waits for a disk: the debugger stops them. */
import { Session, type NodeWorker } from 'node:inspector/promises';

/** Stops all threads but this one, each before its next statement. Resolves with what lets them go on. */
export async function stallThreads(): Promise<() => Promise<void>> {
  const session = new Session();
  session.connect();
  const threads: string[] = [];
  const attached = new Promise<void>((resolve) => {
    session.on('NodeWorker.attachedToWorker', ({ params }: { params: NodeWorker.AttachedToWorkerEventDataType }) => {
      threads.push(params.sessionId);
      resolve();
    });
  });
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  await attached;
  const tell = async (...methods: string[]): Promise<void> => {
    for (const sessionId of threads)
      for (const [i, method] of methods.entries())
        await session.post('NodeWorker.sendMessageToWorker', {
          sessionId,
          message: JSON.stringify({ id: i + 1, method }),
        });
  };
  await tell('Debugger.enable', 'Debugger.pause');
  return async () => {
    await tell('Debugger.resume', 'Debugger.disable');
    session.disconnect();
  };
}
