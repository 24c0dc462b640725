// The commands that replay what failed, from the lines of a log. Simulators, fuzzer, campaigns, C and AVA tests print
// them, each in its way.

/** C tests print the variables; make prints the program afterwards: FAILED: ../build/native-SANITIZER/test/FOLDER/PROGRAM */
function ofC(lines) {
  let variables;
  return lines.flatMap((line) => {
    variables = /^replay: ((?:FARKV_\w+=\S+ ?)+)$/.exec(line)?.[1] ?? variables;
    const [, sanitizer, program] = /^FAILED: \S*build\/native(?:-([\w-]+))?\/test\/\S*?(\w+)$/.exec(line) ?? [];
    if (program === undefined) return [];
    const san = sanitizer === undefined ? '' : ` SAN=${sanitizer.replaceAll('-', ',')}`;
    const command = `${variables === undefined ? '' : `${variables.trim()} `}make -s -C native test ONLY=${program}${san}`;
    variables = undefined;
    return [command];
  });
}

/** AVA shows the seeds of tests that passed, too. */
function ofAva(lines) {
  const failed = lines.flatMap((line) => /[✘✖] \[fail\]: (.*)$/.exec(line)?.[1] ?? []);
  return lines.flatMap((line) => {
    const [, command, title] = /replay: (FARKV_SEED=\d+ npx ava .* -m '(.*)')$/.exec(line) ?? [];
    return title !== undefined && failed.some((one) => one === title || one.endsWith(` › ${title}`)) ? [command] : [];
  });
}

/** The command of each run of a campaign stands above the run's result. */
function ofCampaign(lines) {
  const failed = lines.flatMap((line) => /^\s*seed (\d+): .* [1-9]\d* failures$/.exec(line)?.[1] ?? []);
  return lines.filter((line) =>
    failed.includes(/^(?:\w+=\S+ )?node dist\/test\/chaos\/main\.js .*--seed (\d+) /.exec(line)?.[1]),
  );
}

/** Whole commands: of simulators and of the fuzzer. */
const whole = (lines) =>
  lines.flatMap((line) => {
    const command = /^replay: (.*)$/.exec(line)?.[1];
    return command === undefined || /^(FARKV_\w+=\S+ ?)+$/.test(command) ? [] : [command];
  });

/** Each once. Empty where the log names none. */
export const replaysIn = (text) => {
  const lines = text.split('\n');
  return [...new Set([...whole(lines), ...ofC(lines), ...ofAva(lines), ...ofCampaign(lines)])];
};
