/** Commands at another port of a server than the one that they need: each says which it may be. */
import test, { type ExecutionContext } from 'ava';
import { Cluster, farkv } from '../support/cluster.js';
import { TLS_OPTIONS, tlsFile } from '../support/tls-files.js';

interface Ports {
  readonly control: string;
  readonly data: string;
  readonly http: string;
  readonly peer: string;
}

async function portsOf(t: ExecutionContext, args: readonly string[]): Promise<Ports> {
  const cluster = await Cluster.start(t, { args: ['--http-listen', '127.0.0.1:0', ...args] });
  const { control = [], fabric = [], http = [], peer = [] } = cluster.server(0).readyLine ?? {};
  const data = fabric.find(({ provider }) => provider === 'tcp')?.address.replace(/^tls:/, '') ?? '';
  return { control: control[0] ?? '', data, http: http[0] ?? '', peer: peer[0] ?? '' };
}

test.serial('without TLS', async (t) => {
  const { control, data, http, peer } = await portsOf(t, []);
  for (const at of [data, http]) {
    const { code, stderr } = await farkv(['status', '--connect', at]);
    t.is(code, 69);
    t.regex(stderr, /does it want TLS\? Is it the port of data or of http, and not --listen\?/, at);
  }
  for (const at of [control, data, peer]) {
    const { code, stderr } = await farkv(['ready', at]);
    t.is(code, 69);
    t.regex(stderr, /does not answer http: .*; farkv ready asks the port that a server has by --http-listen/, at);
  }
});

test.serial('with TLS', async (t) => {
  const { control, data, http } = await portsOf(t, TLS_OPTIONS);
  const asked = async (at: string): Promise<string> =>
    (await farkv(['status', '--connect', at, '--tls-ca', tlsFile('ca.pem')])).stderr;
  t.regex(await asked(http), /without an answer: is it the port of http, and not --listen\?/);
  t.regex(
    await asked(data),
    /the TLS handshake failed: is it one without TLS, or the port of data, and not --listen\?/,
  );
  t.is(await asked(control), '');
});
