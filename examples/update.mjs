// Change a value that others change at the same time: read, compute, swap, again until nobody was in between.
import { connect } from 'farkv';

const kv = await connect({ servers: process.env.FARKV ?? '127.0.0.1:7400', codec: 'msgpack' });
const add = (item) => kv.update('example:cart', (cart = []) => [...cart, item]);

await Promise.all(['apples', 'pears', 'plums'].map(add));
console.log((await kv.get('example:cart')).sort().join(', '));
await kv.delete('example:cart');
await kv.close();
// prints: apples, pears, plums
