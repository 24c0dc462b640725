// What may go wrong is told by `code`, from a closed set. A missing key and a lost swap are values, not errors.
import { connect } from 'farkv';

const kv = await connect(process.env.FARKV ?? '127.0.0.1:7400');
const codeOf = (call) =>
  call.then(
    () => 'none',
    (error) => error.code,
  );

console.log(await codeOf(kv.put('', 'a key has 1 to 1024 bytes')));
console.log(await codeOf(kv.get('key', { signal: AbortSignal.abort() })));
// ERR_TIMEOUT: no effect. ERR_INDETERMINATE: it may have taken effect; read before doing it again.
console.log(await codeOf(kv.put('example:errors', 'x', { timeoutMs: 5000 })));
await kv.delete('example:errors');
await kv.close();
console.log(await codeOf(kv.get('key')));
// prints: ERR_KEY_INVALID
// prints: ERR_ABORTED
// prints: none
// prints: ERR_CLOSED
