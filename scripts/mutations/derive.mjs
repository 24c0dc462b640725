/** What must not be missing of changes that an owner makes from the present entry (native/serve/derive.h). */
import { drop, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const derive = by('dataplane_derive');
const copies = by('dataplane_derive_copies');

export const mutations = rows('derive', {
  'damaged-operand': [drop(), derive('of_what_is_damaged_nothing_is_made')],
  'cut-fields': [drop('return false'), by('wire')('fields_that_break_one_rule_are_refused')],
  'retry-without-result': [without('.value'), derive('a_retry_is_answered_the_first_sum_and_adds_nothing')],
  'copy-without-result': [drop(), copies('the_next_owner_answers_a_retry_the_first_result')],
});
