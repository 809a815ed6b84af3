/**
 * What each engine of a model has computed, as hashes of prefixes: an approximation of the caches in its memory, which
 * forgets what was used longest ago. `most`: how many blocks an engine may hold.
 */
export function openPrefixIndex(most: number) {
  const engines = new Map<string, Set<number>>()

  return {
    /** How many of these blocks, from the first on, the engine has. */
    common(engineId: string, blocks: readonly number[]): number {
      const known = engines.get(engineId)
      if (!known) return 0
      let at = 0
      while (at < blocks.length && known.has(blocks[at]!)) at++
      return at
    },
    /** How many blocks the engine has in all. */
    size: (engineId: string): number => engines.get(engineId)?.size ?? 0,
    /** The engine computes a prompt with these blocks. */
    add(engineId: string, blocks: readonly number[]): void {
      let known = engines.get(engineId)
      if (!known) engines.set(engineId, (known = new Set()))
      // From the last on, so that of a prompt its end is forgotten first: the start may be that of others.
      for (let at = Math.min(blocks.length, most) - 1; at >= 0; at--) {
        known.delete(blocks[at]!)
        known.add(blocks[at]!)
      }
      for (const oldest of known) {
        if (known.size <= most) break
        known.delete(oldest)
      }
    },
    /** Forgets all engines but these. */
    keep(engineIds: ReadonlySet<string>): void {
      for (const id of engines.keys()) if (!engineIds.has(id)) engines.delete(id)
    },
    get engines(): number {
      return engines.size
    },
  }
}

export type PrefixIndex = ReturnType<typeof openPrefixIndex>
