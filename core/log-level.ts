/** How much a line of a server's log matters. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
