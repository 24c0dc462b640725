/**
 * Signals that change nothing in a process that serves. By default SIGHUP and SIGUSR2 would end it, and SIGUSR1 would open
 * Node's debugger, which obeys every user of the host.
 */
const MEANINGS = {
  SIGHUP: 'files of tokens and certificates are read again by themselves, within a second of a change; nothing else is',
  SIGUSR1: 'nothing is to be done',
  SIGUSR2: 'nothing is to be done',
} as const;

/** For as long as the process lives. `tell` is given a line for each signal that comes. */
export function passOverSignals(tell: (text: string, signal: NodeJS.Signals) => void): void {
  for (const signal of Object.keys(MEANINGS) as (keyof typeof MEANINGS)[])
    process.on(signal, () => tell(`${signal}: ${MEANINGS[signal]}`, signal));
}
