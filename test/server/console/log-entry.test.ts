import { expect, test } from 'vitest'
import { entryOf } from '../../../server/console/app/components/log/log-entry.ts'

const line = { time: '2026-11-24T03:00:00.000Z', model_id: 'm', engine_id: 'wkr_1' }
const ofServer = { ...line, source: 'server' as const, level: 'warn' as const }
const ofEngine = { ...line, source: 'engine' as const, level: null, fields: {} }

test('a line of the server is its message with model, engine and fields', () => {
  expect(
    entryOf({ ...ofServer, message: 'Engine ready', fields: { load_ms: 9, tags: ['a'], why: 'b' } }),
  ).toMatchObject({
    time: line.time,
    level: 'warn',
    text: 'Engine ready  model=m  engine=wkr_1  load_ms=9  tags=["a"]  why=b',
  })
  expect(entryOf({ ...ofServer, model_id: null, engine_id: null, message: 'Ready', fields: {} }).text).toBe('Ready')
})

test.each([
  ['plain text', 'loaded 3 layers', null, 'loaded 3 layers'],
  ['colours and control characters', '\u001B[31mred\u001B[0m\u0007 text', null, 'red text'],
  ['JSON with a message', '{"time":"x","level":"info","message":"Sized","ms":3}', 'info', 'Sized  ms=3'],
  ['JSON with an unknown level', '{"level":"FATAL","message":"Sized"}', null, 'Sized'],
  ['JSON without a message', '{"a":1}', null, '{"a":1}'],
  ['what only begins as JSON', '{"message":', null, '{"message":'],
] as const)('a line of an engine: %s', (_, message, level, text) => {
  expect(entryOf({ ...ofEngine, message })).toMatchObject({ level, text })
})

test('every entry has its own id', () => {
  expect(entryOf({ ...ofEngine, message: 'a' }).id).not.toBe(entryOf({ ...ofEngine, message: 'a' }).id)
})
