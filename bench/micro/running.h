/* running.h: a client of servers that run already, over shm, made from what a program that knows the cluster writes to
 * standard input.
 *
 *     seed <32 hex digits>                  of the cluster's hash
 *     ticket <160>                          a client's
 *     value <2 for each byte>               what every key has
 *     owner <number> <incarnation> <address>
 *     route <shard> <owner>                 for every shard, in order
 *     end
 *
 * On standard input, because a ticket is a credential: arguments are there for everybody to read.
 */
#ifndef FARKV_BENCH_MICRO_RUNNING_H
#define FARKV_BENCH_MICRO_RUNNING_H
#include "rig.h"

static void refuse(const char *what) {
    fprintf(stderr, "standard input: %s\n", what);
    exit(1);
}

static void read_hex(const char *text, void *to, size_t bytes) {
    if (strlen(text) != 2 * bytes) refuse("a field of another length than expected");
    for (size_t i = 0; i < bytes; i++) {
        unsigned byte;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) refuse("hexadecimal digits were expected");
        ((uint8_t *)to)[i] = (uint8_t)byte;
    }
}

static void read_owner(const char *line, rig_owners *o) {
    session_address *a = calloc(1, sizeof *a);
    char *text = malloc(strlen(line) + 1);
    unsigned number;
    unsigned long long incarnation;
    if (sscanf(line, "%u %llx %s", &number, &incarnation, text) != 3)
        refuse("an owner is a number, an incarnation and an address");
    *a = (session_address){ FAB_SHM, text, 0 };
    o->owners = realloc(o->owners, (o->count + 1) * sizeof *o->owners);
    o->owners[o->count++] = (session_owner_config){
        .owner = number, .incarnation = incarnation, .addresses = a, .count = 1
    };
}

/* Sets shard_count, value_bytes and value. What it allocates is there for the life of the program. */
static lookup *join_running(void) {
    rig_owners o = { .count = 0 };
    char *line = NULL;
    size_t room = 0;
    shard_count = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        line[strcspn(line, "\n")] = 0;
        char *rest = strchr(line, ' ');
        if (!rest) break;
        *rest++ = 0;
        unsigned shard, owner;
        if (!strcmp(line, "seed")) {
            read_hex(rest, &o.seed, sizeof o.seed);
        } else if (!strcmp(line, "ticket")) {
            read_hex(rest, &o.pass, sizeof o.pass);
        } else if (!strcmp(line, "value")) {
            value_bytes = (uint32_t)(strlen(rest) / 2);
            value = malloc(value_bytes + 1);
            read_hex(rest, value, value_bytes);
        } else if (!strcmp(line, "owner")) {
            read_owner(rest, &o);
        } else if (!strcmp(line, "route") && sscanf(rest, "%u %u", &shard, &owner) == 2 && shard == shard_count) {
            o.owner_of = realloc(o.owner_of, (shard + 1) * sizeof *o.owner_of);
            o.owner_of[shard_count++] = owner;
        } else {
            refuse(line);
        }
    }
    if (!line || strcmp(line, "end") || !value || !o.count || !shard_count)
        refuse("what a client must know is not all there");
    free(line);
    return rig_client(&o, 0);
}
#endif
