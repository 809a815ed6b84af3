import { z } from 'zod'
import type { EngineLine } from '../../core/models/engine-output.ts'
import { anyObject, namedObject, nullable, nullableString, oneOf, string } from '../../core/schemas/fields.ts'

/** One line of the server's or an engine's log. */
export const LogLine = namedObject('LogLine', 'A line of a log.', {
  time: string('ISO 8601, UTC, with milliseconds.'),
  source: oneOf('Who wrote the line.', ['server', 'engine']),
  level: nullable(z.enum(['debug', 'info', 'warn', 'error']), 'Level; null for lines of engines.'),
  model_id: nullableString('Id of the model that it concerns, else null.'),
  engine_id: nullableString('Id of the engine that it concerns, else null.'),
  message: string('Text of the line.'),
  fields: anyObject('Further fields of a line of the server.'),
})
export type LogLine = z.output<typeof LogLine>

export const lineOfEngine = ({ at, modelId, engineId, text }: EngineLine): LogLine => ({
  time: new Date(at).toISOString(),
  source: 'engine',
  level: null,
  model_id: modelId,
  engine_id: engineId,
  message: text,
  fields: {},
})

/** Parses an entry of the server's log, which has one JSON object per line. */
export function lineOfServer(json: string): LogLine {
  const { time, level, message, model, engine, ...fields } = JSON.parse(json) as {
    time: string
    level: LogLine['level']
    message: string
    model?: unknown
    engine?: unknown
  }
  return {
    time,
    source: 'server',
    level,
    model_id: typeof model === 'string' ? model : null,
    engine_id: typeof engine === 'string' ? engine : null,
    message,
    fields,
  }
}
