import { expect, test } from 'vitest'
import { entryText, type LogEntry } from '../../../cli/logs/entry.ts'
import { plainPaint } from '../../../cli/terminal/styled-line.ts'

const entry: LogEntry = {
  time: '2026-11-21T10:20:30.400Z',
  source: 'engine',
  level: null,
  model_id: 'm',
  engine_id: 'wkr_1',
  message: '',
  fields: {},
}

test.each<[name: string, of: Partial<LogEntry>, text: string]>([
  ['an engine', { message: 'loading tensors' }, '10:20:30 m loading tensors'],
  ['an engine for images', { message: '\u001b[31mno memory\u001b[0m\u0007' }, '10:20:30 m no memory'],
  [
    'the built-in engine, which logs as the server does',
    { message: '{"time":"x","level":"info","message":"The engine is ready","model":"m","ms":5}' },
    '10:20:30 m info  The engine is ready  ms=5',
  ],
  ['an engine that prints its own JSON', { message: '{"time":1}' }, '10:20:30 m {"time":1}'],
  ['an engine that prints incomplete JSON', { message: '{"time":' }, '10:20:30 m {"time":'],
  [
    'the server',
    { source: 'server', level: 'warn', message: 'Slow', fields: { ms: 7 } },
    '10:20:30 warn  Slow  model=m engine=wkr_1 ms=7',
  ],
  [
    'the server with a cause',
    {
      source: 'server',
      level: 'error',
      message: 'Broken',
      model_id: null,
      engine_id: null,
      fields: { cause: 'Error: x\n at y' },
    },
    '10:20:30 error Broken\n    Error: x\n     at y',
  ],
])('%s', (_, of, text) => expect(entryText({ ...entry, ...of }, plainPaint)).toBe(text))
