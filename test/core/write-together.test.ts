import { PassThrough, type Writable } from 'node:stream'
import { expect, test } from 'vitest'
import { writeTogether } from '../../core/write-together.ts'

/** Sockets that count how often they are told to write what they hold. */
const sockets = (count: number) =>
  Array.from({ length: count }, () => {
    const socket = new PassThrough()
    const written: string[] = []
    socket._writev = (chunks, done) => {
      written.push(chunks.map(({ chunk }) => String(chunk)).join(''))
      done()
    }
    socket._write = (chunk, _, done) => {
      written.push(String(chunk))
      done()
    }
    return { socket, written }
  })

const write = (socket: Writable, ...texts: string[]) => {
  for (const text of texts) {
    writeTogether(socket)
    socket.write(text)
  }
}

const endOfTurn = () => new Promise<void>(setImmediate)

test('what is written to a socket in a turn is written at its end, by one call', async () => {
  const [one, other] = sockets(2)
  write(one!.socket, 'a', 'b')
  write(other!.socket, 'c')
  expect([one!.written, other!.written]).toEqual([[], []])
  await endOfTurn()
  expect([one!.written, other!.written]).toEqual([['ab'], ['c']])
  write(one!.socket, 'd')
  await endOfTurn()
  expect(one!.written).toEqual(['ab', 'd'])
})

test('sixteen sockets wait for no others', async () => {
  const all = sockets(20)
  for (const { socket } of all) write(socket, 'a')
  expect(all.map(({ written }) => written.length)).toEqual([...Array(16).fill(1), ...Array(4).fill(0)])
  await endOfTurn()
  expect(all.every(({ written }) => written.length === 1)).toBe(true)
})

test('a socket that ends or is destroyed meanwhile holds up no other', async () => {
  const [ended, destroyed, other] = sockets(3)
  for (const { socket } of [ended!, destroyed!, other!]) write(socket, 'a')
  ended!.socket.end('b')
  destroyed!.socket.destroy()
  await endOfTurn()
  expect(ended!.written.join('')).toBe('ab')
  expect(destroyed!.written).toEqual([])
  expect(other!.written).toEqual(['a'])
})
