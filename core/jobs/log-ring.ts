import type { LogLine } from '../store/store.ts'

const longestLine = 4_096

/** The newest lines of one run: so many, and so many characters together. */
export function openLogRing({ lines: most = 200, characters = 65_536 } = {}) {
  const kept: LogLine[] = []
  let held = 0
  let dropped = 0

  return {
    add({ at, level, message }: LogLine): void {
      const text = message.length > longestLine ? `${message.slice(0, longestLine - 1)}…` : message
      kept.push({ at, level, message: text })
      held += text.length
      while (kept.length > most || held > characters) {
        held -= kept.shift()!.message.length
        dropped++
      }
    },
    /** Oldest first. Where some had to go, the first line says how many. */
    lines(): LogLine[] {
      const [first] = kept
      if (dropped === 0 || !first) return [...kept]
      const message = `${dropped} earlier ${dropped === 1 ? 'line was' : 'lines were'} not kept.`
      return [{ at: first.at, level: 'WARN', message }, ...kept]
    },
  }
}
