/**
 * SIGTERM and SIGINT for the first process of a container, for which the kernel has no default action: without a listener
 * both would do nothing. They end such a process as they end any other, with the exit codes that a shell reports.
 * An entry imports this module before all others, whose loading takes most of a start.
 *
 * A command with a listener of its own (server, gateway, top, bench) decides alone, as long as it has that listener.
 */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

function end(signal: keyof typeof EXIT_CODES): void {
  if (process.listenerCount(signal) === 1) process.exit(EXIT_CODES[signal]);
}

if (process.pid === 1) process.on('SIGINT', end).on('SIGTERM', end);
