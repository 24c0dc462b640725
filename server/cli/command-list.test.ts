import test from 'ava';
import { allCommands } from './command-list.js';
import { definitionOf } from './manual/definition.js';

test('an action is named by the first word of its usage, so that what is offered is taken', async (t) => {
  for (const command of await allCommands()) {
    const actions = Object.entries(command.actions ?? {});
    for (const [name, usage] of actions) t.is(usage.split(' ')[0], name, String(command.command));
    t.deepEqual(
      definitionOf(command).actions.map(({ name }) => name),
      actions.map(([name]) => name),
      String(command.command),
    );
  }
});
