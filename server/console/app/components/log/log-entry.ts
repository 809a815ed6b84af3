import type { Schema } from '../../api/schema.ts'

export interface LogEntry {
  id: number
  /** ISO 8601; null for a remark of the console. */
  time: string | null
  level: Schema<'LogLine'>['level']
  text: string
}

let nextId = 0

// Engines colour their output, and a terminal's control characters have no meaning here.
// oxlint-disable-next-line no-control-regex
const control = /\u001B\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000B-\u001F\u007F]/g

type Line = Pick<Schema<'LogLine'>, 'level' | 'message' | 'fields'>

/** Reads a line that an engine printed as JSON with a `message`, as infer's own engines do. */
function structured(line: Line): Line {
  if (!line.message.startsWith('{"')) return line
  try {
    const { message, level = null, time: _, ...fields } = JSON.parse(line.message) as Record<string, unknown>
    return typeof message === 'string' ? { message, level: levels.find(one => one === level) ?? null, fields } : line
  } catch {
    return line
  }
}
const levels = ['debug', 'info', 'warn', 'error'] as const

/** Returns a line of a log as text: the message, then of the server's log the model and the engine, then the further fields. */
export function entryOf({ time, source, model_id: model, engine_id: engine, ...line }: Schema<'LogLine'>): LogEntry {
  const { level, message, fields } =
    source === 'engine'
      ? structured(line)
      : { ...line, fields: { ...(model && { model }), ...(engine && { engine }), ...line.fields } }
  const more = Object.entries(fields).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return { id: nextId++, time, level, text: [message, ...more].join('  ').replace(control, '') }
}

/** A line that the console itself adds. */
export const remark = (text: string): LogEntry => ({ id: nextId++, time: null, level: 'warn', text })
