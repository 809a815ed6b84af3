import type { IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { openBodyRoom } from '../../core/admission/body-room.ts'
import { heldBytes } from '../../server/body.ts'

const request = (length?: number) =>
  ({ headers: length === undefined ? {} : { 'content-length': String(length) } }) as IncomingMessage

test('bodies are held up to the bound, and room comes back with each that goes', () => {
  const room = openBodyRoom(1_000)
  const first = room.hold(heldBytes(request(300)))
  const second = room.hold(heldBytes(request(200)))
  expect(() => room.hold(heldBytes(request(1)))).toThrow(/hold all the memory/)
  second()
  second()
  expect(() => room.hold(heldBytes(request(201)))).toThrow(/hold all the memory/)
  expect(() => room.hold(heldBytes(request(200)))).not.toThrow()
  first()
})

test('one body alone is always taken, whatever its size; its own limit is elsewhere', () => {
  expect(() => openBodyRoom(10).hold(heldBytes(request(1_000)))).not.toThrow()
})

test('a body of unannounced length counts as a large one', () => {
  const room = openBodyRoom(3 << 20)
  room.hold(heldBytes(request()))
  expect(() => room.hold(heldBytes(request()))).toThrow(/hold all the memory/)
})
