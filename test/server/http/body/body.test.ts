import type { IncomingMessage } from 'node:http'
import { expect, test, vi } from 'vitest'
import { openBodyMemory } from '../../../../core/admission/body-memory.ts'
import { heldBytes } from '../../../../server/http/body/body.ts'

const request = (length?: number) =>
  ({ headers: length === undefined ? {} : { 'content-length': String(length) } }) as IncomingMessage

test('bodies are held up to the limit, and each released body frees its share', () => {
  const room = openBodyMemory(1_000)
  const first = room.hold(heldBytes(request(300)))
  const second = room.hold(heldBytes(request(200)))
  expect(() => room.hold(heldBytes(request(1)))).toThrow(/use all the memory/)
  second()
  second()
  expect(() => room.hold(heldBytes(request(201)))).toThrow(/use all the memory/)
  expect(() => room.hold(heldBytes(request(200)))).not.toThrow()
  first()
})

test('while large bodies are read, the memory of the largest counts until it has been read', () => {
  expect(heldBytes(request(30 << 20))).toEqual({ kept: 60 << 20, whileRead: 180 << 20 })
  const room = openBodyMemory(1_000)
  const first = room.hold({ kept: 100, whileRead: 600 })
  const second = room.hold({ kept: 200, whileRead: 500 })
  expect(() => room.hold({ kept: 101, whileRead: 0 })).toThrow(/use all the memory/)
  first(100)
  room.hold({ kept: 200, whileRead: 0 })()
  expect(() => room.hold({ kept: 201, whileRead: 0 })).toThrow(/use all the memory/)
  second(200)
  second(900)
  room.hold({ kept: 700, whileRead: 0 })()
  first()
  second()
  room.hold({ kept: 1_000, whileRead: 0 })
})

test('garbage is collected once when the server is idle after holding much', () => {
  vi.useFakeTimers()
  try {
    const collect = vi.fn()
    const room = openBodyMemory(100 << 20, collect)
    room.hold({ kept: 1 << 20, whileRead: 0 })()
    vi.advanceTimersByTime(60_000)
    expect(collect).not.toHaveBeenCalled()
    room.hold({ kept: 50 << 20, whileRead: 0 })()
    vi.advanceTimersByTime(1_000)
    const small = room.hold({ kept: 10, whileRead: 0 })
    vi.advanceTimersByTime(60_000)
    expect(collect).not.toHaveBeenCalled()
    small()
    vi.advanceTimersByTime(60_000)
    room.hold({ kept: 10, whileRead: 0 })()
    vi.advanceTimersByTime(60_000)
    expect(collect).toHaveBeenCalledTimes(1)
  } finally {
    vi.useRealTimers()
  }
})

test('a single body is always accepted, whatever its size; its own limit is elsewhere', () => {
  expect(() => openBodyMemory(10).hold(heldBytes(request(1_000)))).not.toThrow()
})

test('a body without Content-Length counts as a large one', () => {
  const room = openBodyMemory(3 << 20)
  room.hold(heldBytes(request()))
  expect(() => room.hold(heldBytes(request()))).toThrow(/use all the memory/)
})
