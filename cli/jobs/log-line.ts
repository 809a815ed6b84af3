import { type Paint, printable } from '../terminal/paint.ts'
import type { LogLine } from './log-reader.ts'

const levels: Record<string, keyof Paint> = { ERROR: 'bad', WARN: 'warning', STDERR: 'warning' }

/** Formats a log line: `12:00:00 INFO step 12/30`, the time in UTC. */
export function lineText({ timestamp, level, message }: LogLine, paint: Paint): string {
  const time = /T(\d{2}:\d{2}:\d{2})/.exec(timestamp)?.[1] ?? printable(timestamp)
  return `${paint.faint(time)} ${paint[levels[level] ?? 'faint'](printable(level).padEnd(6))} ${printable(message)}`
}
