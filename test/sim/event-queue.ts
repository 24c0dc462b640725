/** Events in the order of their time, and of their making where times are equal: a binary heap. */
export interface Timed {
  /** Microseconds of simulated time. */
  at: number;
  order: number;
}

export class EventQueue<T extends Timed> {
  readonly #heap: T[] = [];
  #made = 0;

  get size(): number {
    return this.#heap.length;
  }

  push(event: T): void {
    event.order = this.#made++;
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent]!;
      if (above.at < event.at || (above.at === event.at && above.order < event.order)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  pop(): T | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    const size = heap.length;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      const right = child + 1;
      if (right < size && before(heap[right]!, heap[child]!)) child = right;
      if (before(last, heap[child]!)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function before(a: Timed, b: Timed): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
