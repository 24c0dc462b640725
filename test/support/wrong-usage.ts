/** yargs' `fail` of this project's test programs: the reason in a line, and exit code 2. */
export function wrongUsage(message: string, error: Error | undefined): never {
  console.error(`${error?.message ?? message}; --help says more`);
  process.exit(2);
}
