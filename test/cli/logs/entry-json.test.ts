import { expect, test } from 'vitest'
import { entryJson, type LogEntry } from '../../../cli/logs/entry.ts'

const entry = (message: string): LogEntry => ({
  time: 't',
  source: 'engine',
  level: null,
  model_id: 'm',
  engine_id: 'e',
  message,
  fields: {},
})

test('JSON log lines of the built-in engine are unpacked', () => {
  const own = '{"time":"2026-01-01T00:00:00Z","level":"info","message":"Loaded","model":"m","layers":3}'
  expect(entryJson(entry(own))).toMatchObject({ time: 't', level: 'info', message: 'Loaded', fields: { layers: 3 } })
})

test.each(['plain', '{"time":', '{"time":1}'])('%s is unchanged', text =>
  expect(entryJson(entry(text))).toEqual(entry(text)),
)
