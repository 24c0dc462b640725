/** What must not be missing from the links between data planes, each with the C test that notices. */
import { drop, never, without } from './checks/operators.mjs';
import { by, rows } from './checks/rows.mjs';

const copy = by('dataplane_backup');
const copies = by('dataplane_copies');
const links = by('dataplane_links');

export const mutations = rows('links', {
  'bytes-changed': [drop(), copy('bytes_that_changed_on_their_way_are_asked_for_again')],
  'any-order': [drop(), copy('what_is_not_the_next_record_of_its_owner_is_not_taken')],
  'keys-of-other-shards': [never(), copy('a_record_of_another_shard_or_an_older_version_ends_the_copy')],
  'served-while-following': [without('repl_follows'), copy('a_copy_is_not_served')],
  'lacks-committed': [without('>= first'), copies('who_cannot_follow_is_refused')],
  'owner-of-the-past': [drop(), copies('who_cannot_follow_is_refused')],
  'unsent-acknowledged': [without('f->sent'), copies('an_acknowledgement_of_what_was_not_sent_is_none')],
  'lease-from-the-future': [drop(), links('only_servers_have_links_and_over_a_link_only_its_messages_count')],
  'any-ticket': [never(), links('only_servers_have_links_and_over_a_link_only_its_messages_count')],
});
