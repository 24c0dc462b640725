/**
 * What the program that started a server is told of it, as systemd wants it of a unit with Type=notify: READY=1 and
 * STOPPING=1, sent to the socket that NOTIFY_SOCKET names. Without that variable nothing is sent.
 */

/** Resolves with what sends a state. `warn` is called when one does not arrive: systemd would then end the server. */
export async function serviceManager(
  env: NodeJS.ProcessEnv,
  warn: (text: string) => void,
): Promise<(state: string) => void> {
  const socket = env.NOTIFY_SOCKET;
  if (socket === undefined || socket === '') return () => undefined;
  const { addon } = await import('../../native/addon.js');
  return (state) => {
    const why = addon.notify(socket, state);
    if (why !== undefined) warn(`the service manager was not told ${state.split('\n')[0] ?? ''}: ${socket}: ${why}`);
  };
}
