import type { Api } from '../client/client.ts'
import { logLine } from '../serve/log-line.ts'
import { type Paint, printable } from '../terminal/styled-line.ts'

/** One line of the server's log or of an engine's output. */
export type LogEntry = Api['LogLine']

/** Formats an entry: a server's as `infer serve` prints it, an engine's after the id of its model. */
export function entryText(entry: LogEntry, paint: Paint): string {
  const { time, source, level, model_id, engine_id, message, fields } = entry
  if (source !== 'engine') {
    const more = {
      ...(model_id === null ? {} : { model: model_id }),
      ...(engine_id === null ? {} : { engine: engine_id }),
      ...fields,
    }
    return logLine(JSON.stringify({ time, level, message, ...more }), paint).trimEnd()
  }
  const own = ownLine(message)
  if (own) return logLine(JSON.stringify({ ...own, time }), paint, model_id ?? '-').trimEnd()
  return `${paint.faint(time.slice(11, 19))} ${paint.strong(printable(model_id ?? '-'))} ${printable(withoutColours(message))}`
}

/**
 * Returns an entry for a program. JSON lines of the built-in engine are unpacked, so that `.message` is always text.
 */
export function entryJson(entry: LogEntry): LogEntry {
  const own = entry.source === 'engine' ? ownLine(entry.message) : undefined
  if (!own) return entry
  const { time: _, level, message, ...fields } = own
  return {
    ...entry,
    level: String(level) as LogEntry['level'],
    message: String(message),
    fields: { ...entry.fields, ...fields },
  }
}

/** Parses a line of the built-in engine, which logs JSON as the server does. */
function ownLine(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{"time":')) return undefined
  try {
    const { model: _, ...entry } = JSON.parse(text) as Record<string, unknown>
    return typeof entry.level === 'string' && typeof entry.message === 'string' ? entry : undefined
  } catch {
    return undefined
  }
}

/** Removes color sequences of engines completely: `printable` alone would leave their parameters in the text. */
// oxlint-disable-next-line no-control-regex -- matches control characters
const withoutColours = (text: string): string => text.replaceAll(/\u001b\[[0-9;]*[A-Za-z]/g, '')
