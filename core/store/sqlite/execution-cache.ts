/** How many nodes are kept in memory, over all executions. */
const maxNodes = 100_000

/** The states of unfinished executions by number; the least recently used one is dropped first. */
export function openExecutionCache<Live>(nodesOf: (live: Live) => number) {
  const kept = new Map<number, Live>()
  let nodes = 0

  function drop(number: number): void {
    const live = kept.get(number)
    if (live === undefined) return
    nodes -= nodesOf(live)
    kept.delete(number)
  }

  return {
    get(number: number): Live | undefined {
      const live = kept.get(number)
      if (live === undefined) return undefined
      kept.delete(number)
      kept.set(number, live)
      return live
    },
    keep(number: number, live: Live): void {
      drop(number)
      kept.set(number, live)
      nodes += nodesOf(live)
      while (nodes > maxNodes && kept.size > 1) drop(kept.keys().next().value!)
    },
    drop,
    clear(): void {
      kept.clear()
      nodes = 0
    },
  }
}
