import type { LogLine } from '../store/store.ts'

const maxLine = 4_096

/** Keeps the newest lines of one run, limited in number and in total characters. */
export function openLogRing({ lines: maxLines = 200, characters = 65_536 } = {}) {
  const kept: LogLine[] = []
  let held = 0
  let dropped = 0

  return {
    add({ at, level, message }: LogLine): void {
      const text = message.length > maxLine ? `${message.slice(0, maxLine - 1)}…` : message
      kept.push({ at, level, message: text })
      held += text.length
      while (kept.length > maxLines || held > characters) {
        held -= kept.shift()!.message.length
        dropped++
      }
    },
    /** Oldest first. If lines were dropped, the first line says how many. */
    lines(): LogLine[] {
      const [first] = kept
      if (dropped === 0 || !first) return [...kept]
      const message = `${dropped} earlier ${dropped === 1 ? 'line was' : 'lines were'} not kept.`
      return [{ at: first.at, level: 'WARN', message }, ...kept]
    },
  }
}
