import type { Connection } from './database.ts'

/** How many keys are put into the index in one sorted run. */
const runLength = 8_192
/** How many keys of a run are indexed for each key that arrives, so that a run ends before the next is full. */
const indexedPerKey = 2

interface Key {
  number: number
  digest: string
}

/**
 * The numbers of keys by digest, on a connection that reads: those of `key_digests`, and in memory those that have arrived
 * since, at most two runs. A number may be that of a key that is gone, or has another digest: look at its row.
 */
export function openKeyNumbers(connection: Connection) {
  const arrived = connection.query<Key>`SELECT number, digest FROM idempotency_keys
    WHERE number > ? ORDER BY number`
  const lastIndexed = connection.scalar<number>`SELECT number FROM last_indexed_key`
  const indexed = connection.scalar<number>`SELECT number FROM key_digests WHERE digest = ?`
  /** In the order of the numbers. */
  const recent = new Map<string, number>()
  let last = 0

  function add(digest: string, number: number): void {
    recent.delete(digest)
    recent.set(digest, number)
    last = number
  }

  return {
    recent,
    add,
    /** Forgets keys that were added last, in their order; their numbers are given again. */
    revert(keys: readonly (readonly [digest: string, number: number])[]): void {
      for (const [digest] of keys) recent.delete(digest)
      if (keys[0]) last = keys[0][1] - 1
    },
    /** Reads the keys that other connections have added, and forgets those that are in the index by now. */
    update(): void {
      const done = lastIndexed.get()!
      for (const [digest, number] of recent)
        if (number <= done) recent.delete(digest)
        else break
      for (const { digest, number } of arrived.iterate(Math.max(last, done))) add(digest, number)
    },
    /** The keys that are not in the index, in the order of their numbers. */
    arrived: (): Key[] => arrived.all(lastIndexed.get()!),
    of: (digest: string): number | undefined => recent.get(digest) ?? indexed.get(digest),
  }
}

const newRun = (arrived: readonly Key[]) => ({
  keys: arrived.toSorted((a, b) => (a.digest < b.digest ? -1 : 1)),
  last: arrived.at(-1)?.number ?? 0,
  indexed: 0,
})

/**
 * The same for the writer, which also fills the index: keys are collected, sorted by digest, and indexed a part with each
 * transaction that adds some. Neighbours share pages: with 100,000 keys a group of 128 submissions changes 20 pages of
 * the index instead of 120, which was half of the time of a submission.
 */
export function openKeyDigests(connection: Connection) {
  const numbers = openKeyNumbers(connection)
  // A key that was forgotten meanwhile is not indexed. Its number is not given again: the newest key always stays.
  const index = connection.statement`INSERT INTO key_digests (digest, number)
    SELECT digest, number FROM idempotency_keys WHERE number IN (SELECT value FROM json_each(?))
    ON CONFLICT (digest) DO UPDATE SET number = excluded.number`
  const setLastIndexed = connection.statement`UPDATE last_indexed_key SET number = ?`
  numbers.update()
  /** Committed keys that are being indexed, by digest, the last of their numbers, and how many of them are indexed. */
  let run: { keys: Key[]; last: number; indexed: number } | undefined
  /** The keys of this transaction, for rollbacks, and how many of them `write` has counted. */
  let added: [digest: string, number: number][] = []
  let counted = 0
  /** How many keys of the run were indexed when the transaction began. */
  let before = 0

  function revertTo(length: number, indexedBefore: number): void {
    numbers.revert(added.splice(length))
    counted = Math.min(counted, length)
    if (run) run.indexed = Math.min(run.indexed, indexedBefore)
  }

  return {
    of: numbers.of,
    add(digest: string, number: number): void {
      numbers.add(digest, number)
      added.push([digest, number])
    },
    /** Call it first in a transaction: the one before was committed, or reverted. */
    begin(): void {
      added = []
      counted = 0
      if (run?.indexed === run?.keys.length) run = undefined
      numbers.update()
      // Here, because the numbers of keys that are not committed may be given again.
      if (!run && numbers.recent.size >= runLength) run = newRun(numbers.arrived())
      before = run?.indexed ?? 0
    },
    mark(): () => void {
      const [{ length }, indexed] = [added, run?.indexed ?? 0]
      return () => revertTo(length, indexed)
    },
    write(): void {
      if (counted === added.length) return
      if (run) {
        const from = run.indexed
        run.indexed = Math.min(run.keys.length, from + indexedPerKey * (added.length - counted))
        index.run(JSON.stringify(run.keys.slice(from, run.indexed).map(({ number }) => number)))
        if (run.indexed === run.keys.length) setLastIndexed.run(run.last)
      }
      counted = added.length
    },
    forget: (): void => revertTo(0, before),
  }
}
export type KeyDigests = ReturnType<typeof openKeyDigests>
