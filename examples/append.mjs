// A log of few lines, to which many processes append. Each piece is there once, and pieces do not mix.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');
await Promise.all(['start', 'work', 'end'].map((line) => kv.append('example:log', `${line}\n`, { ttlMs: 60_000 })));
console.log(
  String(await kv.get('example:log'))
    .trim()
    .split('\n')
    .sort()
    .join(' '),
);
await kv.delete('example:log');
await kv.close();
// prints: end start work
