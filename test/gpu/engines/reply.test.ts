import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { type EngineReply, openEngineReply, sendFailure } from '../../../gpu/engines/reply.ts'

const closing: (() => void)[] = []
afterEach(() => closing.splice(0).forEach(close => close()))

/** The port of a server that answers so. */
async function serve(answer: (reply: EngineReply, response: ServerResponse) => void | Promise<void>): Promise<number> {
  const server = createServer((_request, response) => {
    void answer(openEngineReply(response, new AbortController().signal), response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => server.close())
  return (server.address() as AddressInfo).port
}

test('frames arrive in order, and the last of many is not kept waiting', async () => {
  const seen = { text: '', wanted: Promise.withResolvers<void>() }
  const port = await serve(async reply => {
    for (const frame of ['a', 'b', 'c']) await reply.write(frame)
    await seen.wanted.promise
    await reply.write('d')
    await reply.write('e')
    reply.end('f')
  })
  const answered = await fetch(`http://127.0.0.1:${port}`)
  for await (const chunk of answered.body!) {
    seen.text += new TextDecoder().decode(chunk)
    if (seen.text === 'abc') seen.wanted.resolve()
  }
  expect(seen.text).toBe('abcdef')
})

test('a failure comes behind what was said before', async () => {
  const port = await serve((reply, response) => {
    void reply.write('data: 1\n\n')
    void reply.write('data: 2\n\n')
    reply.flush()
    sendFailure(response, new Failure('worker_error', 'It broke.'))
  })
  const text = await (await fetch(`http://127.0.0.1:${port}`)).text()
  expect(text).toMatch(/^data: 1\n\ndata: 2\n\ndata: \{"error":\{"code":"worker_error"/)
})

test('who does not read is waited for, and written to again when he does', async () => {
  const full = Promise.withResolvers<void>()
  const port = await serve(async reply => {
    const block = 'x'.repeat(1 << 20)
    let room = reply.write(block)
    while (!room) {
      await new Promise(setImmediate)
      room = reply.write(block)
    }
    full.resolve()
    await room
    reply.end('the end')
  })
  const caller = connect(port, '127.0.0.1')
  caller.pause()
  caller.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  await full.promise
  let tail = ''
  caller.on('data', chunk => (tail = (tail + chunk.toString('latin1')).slice(-40)))
  caller.resume()
  await once(caller, 'close')
  expect(tail).toContain('the end')
})
