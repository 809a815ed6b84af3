interface Event {
  at: number
  /** Events of the same time run in the order in which they were added. */
  count: number
  act: () => void
}

const before = (a: Event, b: Event): boolean => a.at < b.at || (a.at === b.at && a.count < b.count)

/** Virtual time: a heap of events, and one timer that is set anew each time. */
export function openEvents() {
  const heap: Event[] = []
  let now = 0
  let count = 0
  let timer: Event | undefined

  function push(event: Event): void {
    let at = heap.push(event) - 1
    for (let parent = (at - 1) >> 1; at > 0 && before(heap[at]!, heap[parent]!); parent = (at - 1) >> 1) {
      ;[heap[at], heap[parent]] = [heap[parent]!, heap[at]!]
      at = parent
    }
  }
  function pop(): Event | undefined {
    const [first] = heap
    const last = heap.pop()
    if (!first || !last || heap.length === 0) return first
    heap[0] = last
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      let least = at
      if (left < heap.length && before(heap[left]!, heap[least]!)) least = left
      if (right < heap.length && before(heap[right]!, heap[least]!)) least = right
      if (least === at) return first
      ;[heap[at], heap[least]] = [heap[least]!, heap[at]!]
      at = least
    }
  }
  const at = (time: number, act: () => void): void => push({ at: time, count: ++count, act })

  return {
    now: () => now,
    at,
    after: (ms: number, act: () => void): void => at(now + ms, act),
    /** Replaces the time of the timer. */
    wake: (time: number, act: () => void): void => void (timer = { at: Math.max(time, now), count: ++count, act }),
    /** Runs everything. */
    run(): void {
      for (;;) {
        const next = heap[0]
        const due = timer && (!next || before(timer, next)) ? timer : pop()
        if (!due) return
        if (due === timer) timer = undefined
        // Without events a timer can change nothing more.
        if (!next && due.at === Number.POSITIVE_INFINITY) return
        now = Math.max(now, due.at)
        due.act()
      }
    },
  }
}
