/**
 * Signals that change nothing in a process that serves. By default SIGHUP and SIGUSR2 would end it, and SIGUSR1 would open
 * Node's debugger, which obeys every user of the host.
 */
const MEANINGS = {
  SIGHUP: 'files of tokens and certificates are read again by themselves, within a second of a change; nothing else is',
  SIGUSR1: 'nothing is to be done',
  SIGUSR2: 'nothing is to be done',
} as const;

/** `tell` is given a line for each signal that comes. Returns what gives the signals their defaults back. */
export function passOverSignals(tell: (text: string, signal: NodeJS.Signals) => void): () => void {
  const signals = Object.keys(MEANINGS) as (keyof typeof MEANINGS)[];
  const come = (signal: keyof typeof MEANINGS): void => tell(`${signal}: ${MEANINGS[signal]}`, signal);
  for (const signal of signals) process.on(signal, come);
  return () => {
    for (const signal of signals) process.off(signal, come);
  };
}
