// A server inside this process, on threads of its own: for tests, or for a cache beside a program.
import { connect } from 'farkv';
import { startServer } from 'farkv/server';

const server = await startServer({ listen: '127.0.0.1:0', memory: '64mb' });
const kv = await connect(server.addresses);
await kv.put('greeting', 'hello');
console.log(String(await kv.get('greeting')), kv.transports()[0].provider);
await kv.close();
await server.close();
// prints: hello shm
