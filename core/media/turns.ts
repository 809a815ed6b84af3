import { Failure } from '../failure.ts'

/**
 * Lets `atOnce` of each kind of work go on and the others wait in the order they came, at most `waiting` of them. A
 * name that nobody works under is forgotten.
 */
export function openTurns({ atOnce, waiting, full }: { atOnce: number; waiting: number; full: string }) {
  const lines = new Map<string, { running: number; next: (() => void)[] }>()

  /** Rejects with Failure `no_capacity` when the line is full, and with the signal's reason where it gives up first. */
  async function take<T>(name: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted()
    const line = lines.get(name) ?? { running: 0, next: [] }
    lines.set(name, line)
    if (line.running >= atOnce) {
      if (line.next.length >= waiting) throw new Failure('no_capacity', full, { retryAfterMs: 1_000 })
      await turn(line.next, signal)
    } else line.running++
    try {
      return await work()
    } finally {
      const next = line.next.shift()
      if (next) next()
      else if (--line.running === 0) lines.delete(name)
    }
  }

  return { take, busy: (): number => lines.size }
}

/** Resolves when it is called from the line; whoever gives up leaves it. */
function turn(line: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const start = () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    const leave = () => {
      line.splice(line.indexOf(start), 1)
      reject(signal?.reason as Error)
    }
    signal?.addEventListener('abort', leave, { once: true })
    line.push(start)
  })
}
