/**
 * The environment variables that farkv reads, and the misspelt ones: FARKV_MEMROY would be a server with the default
 * memory, and nobody told.
 */
import { FarkvError } from '../../core/errors.js';
import { nearest } from '../../core/nearest.js';
import { envName, OPTION_NAMES } from './options.js';

const PREFIX = 'FARKV_';

/** Beside those of the server's options: what commands and tests read. */
const OTHERS = ['CONFIG', 'CONNECT', 'TOKEN', 'SECRETS', 'REDIS_PASSWORD', 'STACK', 'SEED', 'TRACE'];

/**
 * Throws ERR_CONFIG for a variable that is like one of farkv's and none. Others are let be, whoever set them: Kubernetes
 * sets FARKV_SERVICE_HOST and FARKV_PORT where a service is called farkv.
 */
export function checkEnvironment(env: NodeJS.ProcessEnv): void {
  const known = new Set([...OTHERS, ...OPTION_NAMES.map((name) => envName(name).slice(PREFIX.length))]);
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(PREFIX)) continue;
    const name = variable.slice(PREFIX.length);
    const meant = known.has(name) ? undefined : nearest(name, known);
    if (meant !== undefined)
      throw new FarkvError(
        'ERR_CONFIG',
        `unknown environment variable ${variable}; did you mean ${PREFIX}${meant}? (unset it if it is of another program)`,
      );
  }
}
