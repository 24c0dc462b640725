// A web server that answers from farkv within the request's own turn: getSync reads over shm or verbs in microseconds.
import { connect } from 'farkv';
import { createServer } from 'node:http';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');
await kv.put('example:/page', '<h1>hello</h1>');
const { provider } = kv.transports()[0];

const server = createServer(async (request, response) => {
  const key = `example:${request.url}`;
  try {
    const page = provider === 'tcp' ? await kv.get(key) : kv.getSync(key);
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html' }).end(page);
  } catch (error) {
    // A URL may be no key, and a server may be away.
    response.writeHead(error.code === 'ERR_KEY_INVALID' ? 404 : 503).end();
  }
});
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  console.log(await (await fetch(`${url}/page`)).text(), (await fetch(`${url}/none`)).status);
  server.close();
  server.closeAllConnections();
  await kv.delete('example:/page');
  await kv.close();
});
// prints: <h1>hello</h1> 404
