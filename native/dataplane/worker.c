/* worker.c: see worker.h. */
#include "worker.h"
#include <signal.h>

int thread_start(pthread_t *t, void *(*run)(void *), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = -pthread_create(t, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}

static void *worker_main(void *arg) {
    worker *w = arg;
    pthread_setname_np(pthread_self(), w->name);
    for (;;) {
        mailbox_sleep(&w->box);
        bool stopping = __atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE);   /* before the box: nothing posted earlier is left */
        mailbox_run(&w->box);
        if (stopping) return NULL;
    }
}

int worker_start(worker *w, const char *name) {
    *w = (worker){ .name = name };
    int e = mailbox_open(&w->box);
    if (e) return e;
    e = thread_start(&w->thread, worker_main, w);
    if (e) mailbox_close(&w->box);
    w->running = e == 0;
    return e;
}

void worker_stop(worker *w) {
    if (!w->running) return;
    w->running = false;
    __atomic_store_n(&w->stopping, true, __ATOMIC_RELEASE);
    mailbox_wake(&w->box);
    pthread_join(w->thread, NULL);
}

void worker_free(worker *w) {
    if (w->name) mailbox_close(&w->box);
    *w = (worker){ 0 };
}
