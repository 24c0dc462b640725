/** What must not be missing from native/base, each with the C test that notices. */
import { by, inFile } from './checks/in-file.mjs';

const region = by('region');

const regions = inFile('native/base/region.c', [
  [
    'base: core dumps have what is in the tables',
    region('core_dumps_have_nothing_of_a_region_at_its_owner_and_at_a_reader'),
    '    if (at != MAP_FAILED) madvise(at, bytes, MADV_DONTDUMP);\n',
    '',
  ],
  [
    'base: mappings are not aligned as huge pages are',
    region('what_is_said_of_huge_pages_is_true_for_the_owner_and_for_a_reader'),
    'bytes > SIZE_MAX / 2 || lies_well) return',
    'bytes > SIZE_MAX / 2 || plain) return',
  ],
  [
    'base: the offset of a mapping is forgotten in its alignment',
    region('what_is_said_of_huge_pages_is_true_for_the_owner_and_for_a_reader'),
    '(size_t)(offset - (uintptr_t)all)',
    '(size_t)(0 - (uintptr_t)all)',
  ],
  [
    'base: huge pages that did not come are said to be there',
    region('where_there_are_no_huge_pages_a_wish_gets_small_ones_and_a_need_an_error'),
    '        *pages = FKV_PAGES_SMALL; /* some of it may be huge: it is not said of it */\n',
    '',
  ],
  [
    'base: huge pages that are needed are done without',
    region('where_there_are_no_huge_pages_a_wish_gets_small_ones_and_a_need_an_error'),
    '        if (flags & FKV_REGION_NEED_HUGE) return e;\n',
    '',
  ],
  [
    'base: no seal against writing',
    region('a_client_that_holds_the_descriptor_changes_nothing_and_the_owner_lives'),
    'if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS) != 0)',
    'if (e == 0 && fcntl(fd, F_ADD_SEALS, SEALS & ~F_SEAL_FUTURE_WRITE) != 0)',
  ],
]);

const shared = by('files');

const files = inFile('native/base/files.c', [
  [
    'files: a region begins with what another one left',
    shared('holes_are_used_again_as_zeroes_and_grow_together'),
    'memset(out->base, 0, bytes);',
    '(void)bytes;',
  ],
  [
    'files: pages never go back',
    shared('pages_go_back_with_the_last_region_of_a_file'),
    'bool is_empty = file->used == 0;',
    'bool is_empty = false;',
  ],
  [
    'files: memory takes the last descriptor',
    shared('the_last_descriptors_are_left_to_others'),
    'if (e == 0 && is_for_others(file->all.fd)) {',
    'if (e == 0 && file->all.fd < 0) {',
  ],
  [
    'files: a renewal leaves holes to be used',
    shared('after_a_renewal_nothing_new_comes_into_files_of_before'),
    '&& !f->old &&',
    '&&',
  ],
]);

const poller = by('poller');

const pollers = inFile('native/base/poller.c', [
  [
    'polling: a thread that sleeps polls when it is woken for nothing',
    poller('a_wait_without_work_ends_in_sleep_and_a_thread_that_sleeps_does_not_poll'),
    '    if (p->state == POLLER_ASLEEP) return POLL_SLEEP;\n    if (p->state == POLLER_WORKING) {',
    '    if (p->state != POLLER_POLLING) {',
  ],
  [
    'polling: waits without work are not learned from',
    poller('a_thread_whose_work_comes_late_hardly_polls'),
    '    habit_in_vain(&p->habit);\n',
    '',
  ],
  [
    'polling: what was learned is never forgotten',
    poller('a_thread_whose_work_comes_soon_again_polls_again'),
    '        habit_helped(&p->habit);\n',
    '',
  ],
  [
    'polling: work that comes in every second wait is enough',
    poller('polling_that_helps_in_every_second_wait_is_given_up'),
    '        habit_helped(&p->habit);\n',
    '        p->habit.steps = 0;\n',
  ],
  [
    'polling: a processor that is shared is not handed over at once',
    poller('on_a_shared_processor_it_yields_before_each_look'),
    '        p->shared = POLL_SHARED;\n',
    '        p->shared = 0;\n',
  ],
  [
    'polling: who keeps the processor is yielded to again and again',
    poller('whoever_keeps_the_processor_is_not_yielded_to_for_a_while'),
    '        if (now_ns < p->backs_off_until) return give_up(p, now_ns);\n',
    '',
  ],
  [
    'polling: after much work a shared processor is polled on',
    poller('after_much_work_a_shared_processor_is_slept_on'),
    '    if (p->much && p->shared && ++p->handed % POLL_SLEPT) return false;\n',
    '',
  ],
  [
    'polling: threads that a change has yet to pass are kept from the processor',
    poller('a_thread_that_waits_for_a_chain_of_others_yields_soon_and_for_longer'),
    '(p->chain ? POLL_CHAIN_ALONE_NS : POLL_ALONE_NS)',
    'POLL_ALONE_NS',
  ],
  [
    'polling: a change is waited for no longer than a READ',
    poller('a_thread_that_waits_for_a_chain_of_others_yields_soon_and_for_longer'),
    'p->chain ? POLL_CHAIN_WINDOW_NS : POLL_WINDOW_NS',
    'POLL_WINDOW_NS',
  ],
]);

export const mutations = [...regions, ...files, ...pollers];
