import type { LogLine } from '../../core/store/store.ts'

/** Which lines are new since it was asked last: fal's client keeps those that a stream has sent it. */
export function openNewLines(): (lines: readonly LogLine[]) => readonly LogLine[] {
  let last: LogLine | undefined
  return lines => {
    const known = lines.findLastIndex(({ at, message }) => at === last?.at && message === last.message)
    last = lines.at(-1) ?? last
    return lines.slice(known + 1)
  }
}
