// Keys with a prefix: counted, then a page at a time, as for a web page. There is no order among keys.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');
await kv.putMany(Array.from({ length: 25 }, (_, i) => ({ key: `example:list:${i}`, value: '' })));
console.log(await kv.count({ prefix: 'example:list:' }));

const seen = new Set();
for await (const { key } of kv.scan({ prefix: 'example:list:' })) seen.add(String(key));
console.log(seen.size);
await kv.deleteMany([...seen]);
await kv.close();
// prints: 25
// prints: 25
