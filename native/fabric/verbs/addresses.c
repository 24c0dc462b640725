/* addresses.c: which addresses of this host lead to an RDMA device. It asks the connection manager, by binding to each:
 * so the answer is that of listening and connecting later, for InfiniBand, RoCE and iWARP alike, and no index of a GID
 * is looked at. */
#include "../fabric.h"
#include "verbs.h"
#ifdef FARKV_HAVE_VERBS
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loopback leads to any device, and a link-local address needs more than its text. */
static socklen_t usable(const struct ifaddrs *a) {
    if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) || a->ifa_flags & IFF_LOOPBACK) return 0;
    if (a->ifa_addr->sa_family == AF_INET) return sizeof(struct sockaddr_in);
    if (a->ifa_addr->sa_family != AF_INET6) return 0;
    return IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)a->ifa_addr)->sin6_addr)
               ? 0
               : sizeof(struct sockaddr_in6);
}

static bool leads_to_device(const verbs_lib *v, struct rdma_event_channel *events, const struct ifaddrs *a,
                            socklen_t bytes, fab_rdma_address *out) {
    struct rdma_cm_id *id;
    if (v->rdma_create_id(events, &id, NULL, RDMA_PS_TCP)) return false;
    bool found = v->rdma_bind_addr(id, a->ifa_addr) == 0 && id->verbs &&
                 getnameinfo(a->ifa_addr, bytes, out->address, sizeof out->address, NULL, 0, NI_NUMERICHOST) == 0;
    if (found) {
        snprintf(out->device, sizeof out->device, "%s", v->ibv_get_device_name(id->verbs->device));
        snprintf(out->network_interface, sizeof out->network_interface, "%s", a->ifa_name);
        out->iwarp = id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
    }
    v->rdma_destroy_id(id);
    return found;
}

int fab_rdma_addresses(fab_rdma_address *out, int max) {
    const verbs_lib *v = verbs_lib_load(NULL);
    struct rdma_event_channel *events = v ? v->rdma_create_event_channel() : NULL;
    struct ifaddrs *all;
    int n = 0;
    if (!events) return 0;
    if (getifaddrs(&all) == 0) {
        for (struct ifaddrs *a = all; a && n < max; a = a->ifa_next) {
            socklen_t bytes = usable(a);
            if (bytes && leads_to_device(v, events, a, bytes, &out[n])) n++;
        }
        freeifaddrs(all);
    }
    v->rdma_destroy_event_channel(events);
    return n;
}

static atomic_int traffic_class = -1; /* not set */

void fab_rdma_traffic_class(uint8_t octet) { atomic_store(&traffic_class, octet); }

int verbs_traffic_class(void) {
    int octet = atomic_load(&traffic_class);
    const char *given = secure_getenv("FARKV_RDMA_TRAFFIC_CLASS");
    if (octet >= 0 || !given || !*given) return octet < 0 ? 0 : octet;
    char *end;
    unsigned long n = strtoul(given, &end, 10);
    return given[0] >= '0' && given[0] <= '9' && !*end && n <= UINT8_MAX ? (int)n : -1;
}

const char *verbs_named_device(void) {
    const char *name = secure_getenv("FARKV_RDMA_DEVICE");
    return name && strchr(name, ',') ? NULL : name;
}

uint32_t fab_rdma_routes(void) {
    fab_rdma_address found[FAB_RDMA_ADDRESSES_MAX];
    int all = verbs_named_device() ? 0 : fab_rdma_addresses(found, FAB_RDMA_ADDRESSES_MAX);
    uint32_t n = 0;
    for (int i = 0; i < all; i++) {
        int known = 0;
        while (strcmp(found[known].device, found[i].device) != 0) known++;
        if (known == i) n++;
    }
    return n;
}

int verbs_source_of(const char *device, int family, struct sockaddr_storage *out) {
    fab_rdma_address found[FAB_RDMA_ADDRESSES_MAX];
    int n = fab_rdma_addresses(found, FAB_RDMA_ADDRESSES_MAX);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < n; i++) {
        if (strcmp(found[i].device, device) != 0) continue;
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
        out->ss_family = (sa_family_t)family;
        if (inet_pton(family, found[i].address, family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr) ==
            1)
            return 0;
    }
    return -ENODEV;
}
#else
int fab_rdma_addresses(fab_rdma_address *out, int max) {
    (void)out;
    (void)max;
    return 0;
}
uint32_t fab_rdma_routes(void) { return 0; }
void fab_rdma_traffic_class(uint8_t octet) { (void)octet; }
#endif
