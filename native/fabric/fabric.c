/* fabric.c: the public functions of fabric.h: arguments are checked here, once for all providers; the rest is dispatch.
 * Not for: anything that one provider does. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "../base/assert.h"
#include "../base/files.h"
#include "provider.h"

static struct {
    const char *name;
    const fab_ops *ops;
} providers[FAB_PROVIDER_COUNT] = {
#define X(NAME, name) [FAB_##NAME] = { #name, &fab_##name##_ops },
    FAB_PROVIDER_LIST(X)
#undef X
};

void fab_bring(const char *name, const fab_ops *ops) {
    fkv_assert(name && ops->open && ops->poll);
    providers[FAB_BROUGHT].name = name;
    providers[FAB_BROUGHT].ops = ops;
}

static bool known(fab_provider p) { return (unsigned)p < FAB_PROVIDER_COUNT && providers[p].name; }

const char *fab_provider_name(fab_provider p) { return known(p) ? providers[p].name : "unknown"; }

fab_provider fab_provider_named(const char *name) {
    fab_provider p = FAB_PROVIDER_COUNT;
    while (--p != FAB_NONE && !(providers[p].name && strcmp(providers[p].name, name) == 0)) {}
    return p;
}

bool fab_can(fab_provider p, fab_ability a) { return known(p) && providers[p].ops->abilities & a; }

const char *fab_provider_missing(fab_provider p) {
    if (!known(p)) return "no such provider";
    return providers[p].ops->missing ? providers[p].ops->missing() : NULL;
}

const char *fab_encryption_missing(fab_provider p) {
    const fab_ops *ops = known(p) ? providers[p].ops : NULL;
    return ops && ops->encryption_missing ? ops->encryption_missing() : "this transport does not encrypt";
}

const char *fab_wc_status_name(fab_wc_status s) {
    static const char *const names[] = {
        [FAB_SUCCESS] = "SUCCESS",
        [FAB_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [FAB_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [FAB_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
        [FAB_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [FAB_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [FAB_REM_OP_ERR] = "REM_OP_ERR",
        [FAB_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
        [FAB_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
        [FAB_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
        [FAB_FATAL_ERR] = "FATAL_ERR",
        [FAB_GENERAL_ERR] = "GENERAL_ERR",
        [FAB_AUTH_ERR] = "AUTH_ERR",
        [FAB_OTHER_DEVICE_ERR] = "OTHER_DEVICE_ERR",
    };
    static_assert(sizeof names / sizeof names[0] == FAB_WC_STATUS_COUNT, "every status has a name");
    return (unsigned)s < FAB_WC_STATUS_COUNT ? names[s] : "UNKNOWN";
}

void fab_log(const fab_options *o, int level, const char *format, ...) {
    if (!o->log) return;
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    o->log(o->log_ctx, level, text);
}

bool fab_descriptors_scarce(const fab_options *o, int fd) {
    struct rlimit most;
    if (!o->spare_descriptors || getrlimit(RLIMIT_NOFILE, &most) != 0) return false;
    uint32_t taken = fkv_files_open(), spare = o->spare_descriptors > taken ? o->spare_descriptors - taken : 0;
    return (rlim_t)fd + spare >= most.rlim_cur;
}

int fab_descriptor_or_none(const fab_options *o, int fd, bool (*end_one)(void *ctx), void *ctx) {
    if (!fab_descriptors_scarce(o, fd)) return fd;
    int low = end_one(ctx) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    close(fd);
    if (low < 0 || !fab_descriptors_scarce(o, low)) return low;
    close(low);
    return -1;
}

uint64_t fab_source_of(const struct sockaddr_storage *a) {
    uint64_t network;
    if (a->ss_family != AF_INET6) return ((const struct sockaddr_in *)a)->sin_addr.s_addr;
    /* One host has as many addresses in it as it likes. */
    memcpy(&network, &((const struct sockaddr_in6 *)a)->sin6_addr, sizeof network);
    return network;
}

/* ---- domain and memory ---- */

static void with_defaults(fab_options *o) {
    if (o->op_timeout_ms == 0) o->op_timeout_ms = 1000;
    if (o->max_message == 0) o->max_message = 16 << 10;
    if (o->max_conns == 0) o->max_conns = 4096;
    if (o->handshake_ms == 0) o->handshake_ms = 2000;
}

int fab_open(const fab_options *given, fab_domain **out) {
    *out = NULL;
    if (!known(given->provider)) return -EINVAL;
    const fab_ops *ops = providers[given->provider].ops;
    if (!ops->open) return -EOPNOTSUPP;
    fab_options o = *given;
    with_defaults(&o);
    if (o.max_message < FAB_MESSAGE_MIN || o.max_message > FAB_MESSAGE_MAX) return -EINVAL;
    int e = ops->open(&o, out);
    if (e) return e;
    fkv_assert(*out);
    (*out)->ops = ops;
    (*out)->options = o;
    return 0;
}

void fab_close(fab_domain *d) {
    if (d) d->ops->close(d);
}

static void mr_init(fab_mr *m, fab_domain *d, void *base, size_t bytes, uint32_t tenant, bool local) {
    m->ops = d->ops;
    m->domain = d;
    m->base = base;
    m->bytes = bytes;
    m->tenant = tenant;
    m->local = local;
}

int fab_reg(fab_domain *d, const fkv_region *r, uint32_t tenant, fab_mr **out) {
    *out = NULL;
    if (!r->base || r->bytes == 0) return -EINVAL;
    int e = d->ops->reg(d, r, tenant, out);
    if (e == 0) mr_init(*out, d, r->base, r->bytes, tenant, false);
    return e;
}

int fab_reg_local(fab_domain *d, void *base, size_t bytes, fab_mr **out) {
    *out = NULL;
    if (!base || bytes == 0) return -EINVAL;
    int e = d->ops->reg_local(d, base, bytes, out);
    if (e == 0) mr_init(*out, d, base, bytes, 0, true);
    return e;
}

int fab_name(fab_mr *m, uint64_t group, uint32_t number) {
    if (number > FAB_NOWHERE) return -EINVAL;
    return m->ops->name ? m->ops->name(m, group, number) : 0;
}

uint64_t fab_mr_rkey(const fab_mr *m) { return m->rkey; }
bool fab_mr_gone(const fab_mr *m) { return m->gone; }
uint64_t fab_mr_addr(const fab_mr *m) { return m->addr; }
void fab_dereg(fab_mr *m) {
    if (m) m->ops->dereg(m);
}

/* ---- completion queues ---- */

int fab_cq_create(fab_domain *d, fab_cq **out) {
    *out = NULL;
    int e = d->ops->cq_create(d, out);
    if (e) return e;
    (*out)->ops = d->ops;
    (*out)->domain = d;
    return 0;
}

void fab_cq_destroy(fab_cq *cq) {
    if (cq) cq->ops->cq_destroy(cq);
}
int fab_poll(fab_cq *cq, fab_wc *wc, int max) { return max > 0 ? cq->ops->poll(cq, wc, max) : 0; }
void fab_flush(fab_cq *cq) { cq->ops->flush(cq); }
int fab_arm(fab_cq *cq) { return cq->ops->arm(cq); }
int fab_fd(fab_cq *cq) { return cq->ops->fd(cq); }
const poller *fab_poller_of(const fab_cq *cq) { return cq->ops->poller_of ? cq->ops->poller_of(cq) : NULL; }
uint64_t fab_reads_served(const fab_cq *cq) { return cq->ops->reads_served ? cq->ops->reads_served(cq) : 0; }

/* ---- connections ---- */

static bool private_ok(const void *priv, uint32_t bytes) { return bytes <= FAB_PRIVATE_MAX && (priv || bytes == 0); }

int fab_listen(fab_cq *cq, const char *address, fab_listener **out) {
    *out = NULL;
    if (!address || strlen(address) >= FAB_ADDRESS_MAX) return -ENAMETOOLONG;
    int e = cq->ops->listen(cq, address, out);
    if (e) return e;
    (*out)->ops = cq->ops;
    (*out)->cq = cq;
    return 0;
}

const char *fab_listener_address(const fab_listener *l) { return l->address; }
void fab_unlisten(fab_listener *l) {
    if (l) l->ops->unlisten(l);
}

int fab_connect_as(fab_cq *cq, const char *address, const fab_identity *who, const void *priv, uint32_t priv_bytes,
                   void *user, fab_conn **out) {
    *out = NULL;
    if (!address || strlen(address) >= FAB_ADDRESS_MAX) return -ENAMETOOLONG;
    if (!private_ok(priv, priv_bytes) || (who && who->bytes > FAB_NAME_MAX)) return -EINVAL;
    return cq->ops->connect(cq, address, who, priv, priv_bytes, user, out);
}

int fab_connect(fab_cq *cq, const char *address, const void *priv, uint32_t priv_bytes, void *user, fab_conn **out) {
    return fab_connect_as(cq, address, NULL, priv, priv_bytes, user, out);
}

int fab_accept(fab_conn *c, uint32_t tenant, const void *priv, uint32_t priv_bytes) {
    return private_ok(priv, priv_bytes) ? c->ops->accept(c, tenant, priv, priv_bytes) : -EINVAL;
}

void fab_attend(fab_conn *c) {
    if (c->ops->attend) c->ops->attend(c);
}

int fab_reject(fab_conn *c, const void *priv, uint32_t priv_bytes) {
    return private_ok(priv, priv_bytes) ? c->ops->reject(c, priv, priv_bytes) : -EINVAL;
}

void fab_disconnect(fab_conn *c) {
    if (c) c->ops->disconnect(c);
}
void fab_set_user(fab_conn *c, void *user) { c->user = user; }
void *fab_user(const fab_conn *c) { return c->user; }
uint32_t fab_max_message(const fab_conn *c) { return c->max_message; }

/* ---- data ---- */

bool fab_follows(const fab_conn *c) { return c->ops->follows && c->ops->follows(c); }

int fab_post_reads(fab_conn *c, const fab_read *r, int n) {
    if (n <= 0) return n == 0 ? 0 : -EINVAL;
    return c->ops->post_reads(c, r, n);
}

int fab_send(fab_conn *c, const struct iovec *iov, int n) {
    if (n <= 0 || n > FAB_IOV_MAX) return -EINVAL;
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        if (iov[i].iov_len > FAB_MESSAGE_MAX) return -EMSGSIZE;
        bytes += iov[i].iov_len;
    }
    if (c->max_message == 0) return -ENOTCONN;
    if (bytes > c->max_message) return -EMSGSIZE;
    if (bytes == 0) return -EINVAL;
    return c->ops->send(c, iov, n, (uint32_t)bytes);
}

void fab_release(fab_conn *c, const void *message) { c->ops->release(c, message); }

int fab_attach(fab_conn *c, uint64_t rkey, uint64_t remote_addr, uint64_t bytes, uint64_t wr_id) {
    return bytes ? c->ops->attach(c, rkey, remote_addr, bytes, wr_id) : -EINVAL;
}

void fab_detach(fab_conn *c, uint64_t rkey) { c->ops->detach(c, rkey); }
const uint8_t *fab_direct(fab_conn *c, uint64_t rkey) { return c->ops->direct ? c->ops->direct(c, rkey) : NULL; }
