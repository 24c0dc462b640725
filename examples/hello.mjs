// Store a value, read it, delete it. Values are bytes unless a codec is chosen.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');
await kv.put('greeting', 'hello');
console.log(String(await kv.get('greeting')));
console.log(await kv.delete('greeting'), await kv.get('greeting'));
await kv.close();
// prints: hello
// prints: true undefined
