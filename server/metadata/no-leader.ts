/** What an operator is told whose change or question needs a leader of the metadata group. */
import { FarkvError } from '../../core/errors.js';

export function noLeader(options?: ErrorOptions): FarkvError {
  return new FarkvError(
    'ERR_NO_LEADER',
    'the metadata group has no leader at present: more than half of its voters are needed to elect one',
    options,
  );
}
