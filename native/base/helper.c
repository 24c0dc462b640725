/* helper.c: see helper.h. */
#include "helper.h"
#include <signal.h>

int thread_start(pthread_t *t, void *(*run)(void *), void *arg) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = -pthread_create(t, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}

static void *helper_main(void *arg) {
    helper *w = arg;
    pthread_setname_np(pthread_self(), w->name);
    for (;;) {
        mailbox_sleep(&w->box);
        /* before the box: nothing posted earlier is left */
        bool stopping = __atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE);
        mailbox_run(&w->box);
        if (stopping) return NULL;
    }
}

int helper_open(helper *w, const char *name) {
    *w = (helper){ .name = name };
    return mailbox_open(&w->box);
}

int helper_start(helper *w, const char *name) {
    int e = helper_open(w, name);
    if (e) return e;
    e = thread_start(&w->thread, helper_main, w);
    if (e) mailbox_close(&w->box);
    w->running = e == 0;
    return e;
}

void helper_stop(helper *w) {
    if (!w->running) return;
    w->running = false;
    __atomic_store_n(&w->stopping, true, __ATOMIC_RELEASE);
    mailbox_wake(&w->box);
    pthread_join(w->thread, NULL);
}

void helper_free(helper *w) {
    if (w->name) mailbox_close(&w->box);
    *w = (helper){ 0 };
}
