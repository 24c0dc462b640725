// Many keys in one call: they cross into native code once, and their READs overlap.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');
const keys = Array.from({ length: 10_000 }, (_, i) => `example:many:${i}`);

await kv.putMany(keys.map((key, i) => ({ key, value: `value ${i}` })));
const values = await kv.getMany(keys);
console.log(values.length, String(values[9_999]));

// Without a Buffer for each value: all side by side in memory of our own.
const [target, spans] = [Buffer.alloc(1 << 20), new Uint32Array(2 * keys.length)];
const used = await kv.getManyInto(keys, target, spans);
console.log(used, target.toString('latin1', spans[0], spans[0] + spans[1]));
console.log(await kv.deleteMany(keys));
await kv.close();
// prints: 10000 value 9999
// prints: 98890 value 0
// prints: 10000
