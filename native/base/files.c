/* files.c: see files.h. */
#include "files.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct hole {
    struct hole *next; /* by offset; no two of them touch */
    uint64_t offset, bytes;
} hole;

struct fkv_file {
    fkv_file *next; /* the latest first */
    fkv_files *of;
    fkv_region all;
    uint64_t carved; /* atomic */
    uint64_t used;   /* bytes of regions */
    uint64_t grain;  /* regions begin at multiples of it */
    uint64_t note;
    bool closed; /* atomic: while it is emptied */
    bool old;    /* for ever */
    hole *holes;
};

struct fkv_files {
    pthread_mutex_t lock;
    const char *name;
    uint64_t least;
    uint32_t parts;
    uint32_t users;      /* regions, and the owner until it leaves */
    uint64_t hole_bytes; /* atomic */
    fkv_file *first;
};

static uint32_t files_open; /* atomic */

uint32_t fkv_files_open(void) { return __atomic_load_n(&files_open, __ATOMIC_RELAXED); }

/* Descriptors that are left to connections and to what the rest of the process opens: an eighth, at most so many. */
enum { LEFT_PART = 8, LEFT_MOST = 512, SMALL_PAGE = 4096 };

fkv_files *fkv_files_make(const char *name, uint32_t parts, uint64_t least) {
    fkv_files *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    *f = (fkv_files){ .name = name, .parts = parts, .least = least, .users = 1 };
    pthread_mutex_init(&f->lock, NULL);
    return f;
}

void fkv_files_renew(fkv_files *f) {
    pthread_mutex_lock(&f->lock);
    for (fkv_file *file = f->first; file; file = file->next) file->old = true;
    pthread_mutex_unlock(&f->lock);
}

static void put_down(fkv_files *f) {
    pthread_mutex_lock(&f->lock);
    bool last = --f->users == 0;
    pthread_mutex_unlock(&f->lock);
    if (!last) return;
    pthread_mutex_destroy(&f->lock);
    free(f);
}

void fkv_files_leave(fkv_files *f) {
    if (f) put_down(f);
}

uint64_t fkv_files_holes(const fkv_files *f) { return __atomic_load_n(&f->hole_bytes, __ATOMIC_RELAXED); }
uint64_t fkv_file_carved(const fkv_file *f) { return __atomic_load_n(&f->carved, __ATOMIC_RELAXED); }
uint64_t *fkv_file_note(fkv_file *f) { return &f->note; }

void fkv_file_close(fkv_file *f, bool closed) { __atomic_store_n(&f->closed, closed, __ATOMIC_RELAXED); }

static void count_hole(fkv_files *f, uint64_t bytes) { __atomic_fetch_add(&f->hole_bytes, bytes, __ATOMIC_RELAXED); }

static uint64_t grain_of(size_t bytes) { return bytes % FKV_HUGE_PAGE == 0 ? FKV_HUGE_PAGE : SMALL_PAGE; }

static bool takes(const fkv_file *f, uint64_t bytes) {
    /* mutation: base/holes-of-before */
    return f->grain == grain_of(bytes) && !f->old && !__atomic_load_n(&f->closed, __ATOMIC_RELAXED);
}

/* ---- holes ---- */

/* The smallest that is large enough; NULL: none is. */
static hole **hole_for(fkv_file *file, uint64_t bytes) {
    hole **best = NULL;
    for (hole **at = &file->holes; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (!best || (*at)->bytes < (*best)->bytes)) best = at;
    return best;
}

/* That of the fullest file. */
static hole **find_hole(fkv_files *f, uint64_t bytes, fkv_file **in) {
    hole **best = NULL;
    for (fkv_file *file = f->first; file; file = file->next) {
        if (!takes(file, bytes)) continue;
        if (best && file->used * (*in)->carved <= (*in)->used * file->carved) continue;
        hole **here = hole_for(file, bytes);
        if (!here) continue;
        best = here;
        *in = file;
    }
    return best;
}

static uint64_t take_hole(fkv_file *file, hole **at, uint64_t bytes) {
    hole *h = *at;
    uint64_t offset = h->offset;
    h->offset += bytes;
    h->bytes -= bytes;
    if (h->bytes == 0) {
        *at = h->next;
        free(h);
    }
    count_hole(file->of, -bytes);
    return offset;
}

/* Where there is no memory to note it, it is lost until the file goes. */
static void add_hole(fkv_file *file, uint64_t offset, uint64_t bytes) {
    hole **at = &file->holes, *before = NULL;
    while (*at && (*at)->offset < offset) {
        before = *at;
        at = &before->next;
    }
    count_hole(file->of, bytes);
    hole *after = *at;
    if (before && before->offset + before->bytes == offset) {
        before->bytes += bytes;
        if (after && offset + bytes == after->offset) {
            before->bytes += after->bytes;
            before->next = after->next;
            free(after);
        }
    } else if (after && offset + bytes == after->offset) {
        after->offset = offset;
        after->bytes += bytes;
    } else {
        hole *h = malloc(sizeof *h);
        if (!h) return;
        *h = (hole){ .next = after, .offset = offset, .bytes = bytes };
        *at = h;
    }
}

/* ---- files ---- */

/* The lowest free descriptor is always the next, so its number says how many are in use. */
static bool is_for_others(int fd) {
    struct rlimit most;
    if (getrlimit(RLIMIT_NOFILE, &most) != 0) return false;
    rlim_t left = most.rlim_cur / LEFT_PART < LEFT_MOST ? most.rlim_cur / LEFT_PART : LEFT_MOST;
    return (rlim_t)fd + left >= most.rlim_cur;
}

static int new_file(fkv_files *f, size_t bytes, fkv_file **out) {
    uint64_t grain = grain_of(bytes), size = bytes > SIZE_MAX / 4 / f->parts ? bytes : bytes * f->parts;
    if (size < f->least) size = f->least;
    fkv_file *file = calloc(1, sizeof *file);
    if (!file) return -ENOMEM;
    *file = (fkv_file){ .of = f, .grain = grain };
    int e = fkv_region_alloc(f->name, (size + grain - 1) / grain * grain, 0, &file->all);
    if (e == 0 && is_for_others(file->all.fd)) {
        fkv_region_free(&file->all);
        e = -EMFILE;
    }
    if (e) {
        free(file);
        return e;
    }
    __atomic_fetch_add(&files_open, 1, __ATOMIC_RELAXED);
    file->next = f->first;
    *out = f->first = file;
    return 0;
}

static fkv_file *with_room(const fkv_files *f, uint64_t bytes) {
    fkv_file *file = f->first;
    while (file && (!takes(file, bytes) || file->all.bytes - file->carved < bytes)) file = file->next;
    return file;
}

/* The place of the next region; *fresh: bytes of it that have no pages. */
static int find_place(fkv_files *f, size_t bytes, fkv_file **in, uint64_t *offset, uint64_t *fresh) {
    hole **at = find_hole(f, bytes, in);
    *fresh = at ? 0 : bytes;
    if (at) {
        *offset = take_hole(*in, at, bytes);
    } else {
        *in = with_room(f, bytes);
        int e = *in ? 0 : new_file(f, bytes, in);
        if (e) return e;
        *offset = (*in)->carved;
        __atomic_store_n(&(*in)->carved, *offset + bytes, __ATOMIC_RELAXED);
    }
    (*in)->used += bytes;
    f->users++;
    return 0;
}

uint64_t fkv_files_lack(fkv_files *f, size_t bytes) {
    fkv_file *in = NULL;
    pthread_mutex_lock(&f->lock);
    bool fits = find_hole(f, bytes, &in) != NULL;
    pthread_mutex_unlock(&f->lock);
    return fits ? 0 : bytes;
}

static int take_own(const fkv_files *f, size_t bytes, int flags, fkv_region *out) {
    if (!(flags & (FKV_REGION_TRY_HUGE | FKV_REGION_NEED_HUGE)) || bytes % FKV_HUGE_PAGE != 0) return -ENOMEM;
    return fkv_region_alloc(f->name, bytes, flags | FKV_REGION_ONLY_RESERVED, out);
}

int fkv_files_take(fkv_files *f, size_t bytes, int flags, fkv_region *out, uint64_t *fresh) {
    fkv_file *in = NULL;
    uint64_t offset = 0;
    *out = (fkv_region){ .fd = -1 };
    *fresh = 0;
    if (bytes == 0 || bytes % SMALL_PAGE != 0) return -EINVAL;
    if (bytes > SIZE_MAX / 4) return -ENOMEM;
    if (take_own(f, bytes, flags, out) == 0) {
        *fresh = bytes;
        return 0;
    }
    pthread_mutex_lock(&f->lock);
    int e = find_place(f, bytes, &in, &offset, fresh);
    pthread_mutex_unlock(&f->lock);
    if (e) {
        *fresh = 0;
        return e;
    }
    *out = (fkv_region){
        .fd = in->all.fd, .offset = offset, .base = in->all.base + offset, .bytes = bytes, .file = in
    };
    e = fkv_region_fill(out, flags | FKV_REGION_PREFAULT);
    if (e)
        *fresh -= fkv_files_give(out);
    else if (*fresh == 0)
        /* mutation: base/not-zeroed */
        memset(out->base, 0, bytes); /* another region was here */
    return e;
}

uint64_t fkv_files_give(fkv_region *r) {
    fkv_file *file = r->file;
    uint64_t back = r->bytes;
    if (!file) {
        if (!r->base) back = 0;
        fkv_region_free(r);
        return back;
    }
    fkv_files *f = file->of;
    pthread_mutex_lock(&f->lock);
    add_hole(file, r->offset, r->bytes);
    file->used -= r->bytes;
    bool is_empty = file->used == 0;
    if (is_empty) {
        fkv_file **at = &f->first;
        while (*at != file) at = &(*at)->next;
        *at = file->next;
        count_hole(f, -file->carved);
    }
    pthread_mutex_unlock(&f->lock);
    back = 0;
    if (is_empty) {
        back = file->carved;
        for (hole *h = file->holes, *next; h; h = next) {
            next = h->next;
            free(h);
        }
        fkv_region_free(&file->all);
        free(file);
        __atomic_fetch_sub(&files_open, 1, __ATOMIC_RELAXED);
    }
    *r = (fkv_region){ .fd = -1 };
    put_down(f);
    return back;
}
