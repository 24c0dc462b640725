/**
 * A process that asks for a server's metrics when it is told to by a line, as Prometheus does, and says when it has them:
 * what that takes is then no time of the client's process. Its argument is their address.
 */
import { createInterface } from 'node:readline';

const url = process.argv[2] ?? '';
const headers = { accept: 'application/openmetrics-text; version=1.0.0' };

process.stdout.write('ready\n');
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await fetch(url, { headers });
  const text = await answer.text();
  if (!answer.ok || !text.endsWith('# EOF\n'))
    throw new Error(`${url} answered ${line} with ${answer.status}: ${text}`);
  process.stdout.write('scraped\n');
}
