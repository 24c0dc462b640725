/* list.h: circular doubly linked lists whose links lie inside the elements, so that moving an element between lists
 * allocates nothing and takes an element out without knowing the list. A list's head is a link too; an element in no
 * list links to itself. */
#ifndef FARKV_BASE_LIST_H
#define FARKV_BASE_LIST_H
#include <stdbool.h>
#include <stddef.h>

typedef struct fkv_list {
    struct fkv_list *next, *prev;
} fkv_list;

#define LIST_OF(link, type, member)       ((type *)(void *)((char *)(link)-offsetof(type, member)))

/* The first, the last, the one after `e`, as elements; NULL: there is none. */
#define LIST_FIRST(head, type, member)    (list_empty(head) ? NULL : LIST_OF((head)->next, type, member))
#define LIST_LAST(head, type, member)     (list_empty(head) ? NULL : LIST_OF((head)->prev, type, member))
#define LIST_AFTER(head, e, type, member) ((e)->member.next == (head) ? NULL : LIST_OF((e)->member.next, type, member))

static inline void list_init(fkv_list *l) { l->next = l->prev = l; }
static inline bool list_empty(const fkv_list *l) { return l->next == l; }
static inline void list_remove(fkv_list *l) {
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}
/* Puts l, which is in no list, before `at`: at the end of the list when `at` is its head. */
static inline void list_insert(fkv_list *at, fkv_list *l) {
    l->next = at;
    l->prev = at->prev;
    at->prev->next = l;
    at->prev = l;
}
static inline void list_push(fkv_list *head, fkv_list *l) { list_insert(head, l); }
static inline void list_push_front(fkv_list *head, fkv_list *l) { list_insert(head->next, l); }
/* Moves all of `from` behind what `to` has. */
static inline void list_append(fkv_list *to, fkv_list *from) {
    if (list_empty(from)) return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}
/* Moves all of `from` to `to`, which is empty. */
static inline void list_take_all(fkv_list *from, fkv_list *to) {
    list_init(to);
    if (list_empty(from)) return;
    *to = *from;
    to->next->prev = to->prev->next = to;
    list_init(from);
}
#endif
