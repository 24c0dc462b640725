/**
 * @keyv/test-suite under AVA. The suite is written for vitest, of which it uses `it`, `beforeEach`, `afterEach` and a
 * few matchers; they are given here in AVA's terms. Tests of one suite use one namespace, so they are serial.
 *
 * Its tests of expiry have times of a few hundred milliseconds, which a busy machine may miss: they get three attempts.
 */
import type { ExecutionContext, TestFn } from 'ava';

const OF_EXPIRY = /ttl|expire|\[keys\]/;

type Hook = () => unknown;

/** vitest's expect(actual), as far as the suite uses it. */
function matchers(t: ExecutionContext, actual: unknown): Readonly<Record<string, (expected?: unknown) => unknown>> {
  return {
    toBe: (expected) => t.is(actual, expected),
    toBeDefined: () => t.not(actual, undefined),
    toBeFalsy: () => t.falsy(actual),
    toBeNull: () => t.is(actual, null),
    toBeTruthy: () => t.truthy(actual),
    toBeUndefined: () => t.is(actual, undefined),
    toEqual: (expected) => t.deepEqual(actual, expected),
  };
}

/** What a suite is given in the place of vitest: its tests become tests of AVA, titled `name: title`. */
export function vitestFor(test: TestFn, name: string): unknown {
  const before: Hook[] = [];
  const after: Hook[] = [];
  return {
    beforeEach: (hook: Hook) => before.push(hook),
    afterEach: (hook: Hook) => after.push(hook),
    it: (title: string, body: (context: unknown) => unknown) => {
      const run = async (t: ExecutionContext): Promise<void> => {
        const expect = Object.assign((actual: unknown) => matchers(t, actual), {
          assertions: (count: number) => t.plan(count),
        });
        for (const hook of before) await hook();
        await body({ expect });
        for (const hook of after) await hook();
      };
      test.serial(`${name}: ${title}`, async (t) => {
        let attempt = await t.try(run);
        for (let more = OF_EXPIRY.test(title) ? 2 : 0; more > 0 && !attempt.passed; more--) {
          attempt.discard();
          attempt = await t.try(run);
        }
        attempt.commit();
      });
    },
  };
}
