import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { writeChunk } from '../../../../server/http/streams/write-chunk.ts'

const parts = ['data: first\n\n', '', `data: ${Buffer.from('größer, 大').toString('latin1')}\n\n`, 'x'.repeat(70_000)]

/** What a client of this version of HTTP gets, without the head. */
async function answer(version: string, write: (res: Parameters<typeof writeChunk>[0], part: string) => void) {
  await using server = createServer((_req, res) => {
    res.writeHead(200, { connection: 'close' })
    for (const part of parts) write(res, part)
    res.end('the end')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.setEncoding('latin1').write(`GET / HTTP/${version}\r\nhost: x\r\n\r\n`)
  const all = await text(socket)
  return all.slice(all.indexOf('\r\n\r\n') + 4)
}

test.each(['1.0', '1.1'])('a client of HTTP/%s gets the same bytes as from Node itself', async version => {
  const own = await answer(version, writeChunk)
  expect(own).toContain(parts[2])
  expect(own).toBe(await answer(version, (res, part) => res.write(part, 'latin1')))
})
