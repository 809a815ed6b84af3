import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { AnswerTooLong, askEngine, type EngineQuestion } from '../../../gpu/requests/ask-engine.ts'

/** Asks a server that answers like this. */
async function ask(answer: RequestListener, more: Partial<EngineQuestion> = {}) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return askEngine({ origin }, { path: '/x?a=b', headers: ['x-key', 'k'], timeoutMs: 20_000, ...more })
}

test.each<[what: string, more: Partial<EngineQuestion>, wanted: string]>([
  ['without a body', {}, 'GET /x?a=b undefined undefined '],
  ['with a body', { body: { a: 'é' } }, 'POST /x?a=b application/json 10 {"a":"é"}'],
  ['with a content type of its own', { body: {}, headers: ['content-type', 'a/b'] }, 'POST /x?a=b a/b 2 {}'],
  ['by POST without a body', { method: 'POST' }, 'POST /x?a=b undefined 0 '],
])('asks %s, and has whatever is answered', async (_what, more, wanted) => {
  const echo: RequestListener = (request, response) => {
    const { method, url, headers } = request
    const head = `${method} ${url} ${headers['content-type']} ${headers['content-length']} `
    void text(request).then(body => response.writeHead(418).end(head + body))
  }
  expect(await ask(echo, more)).toEqual({ status: 418, text: wanted })
})

test('an answer that is too long is read no further', async () => {
  const endless: RequestListener = (_request, response) => void response.write('a'.repeat(100))
  await expect(ask(endless, { maxBytes: 99 })).rejects.toThrow(AnswerTooLong)
})

test('no answer in time is a failure', async () => {
  await expect(ask(() => {}, { timeoutMs: 300 })).rejects.toThrow('did not answer within 300 ms')
})

test('a header that HTTP does not allow is a failure', async () => {
  await expect(ask(() => {}, { headers: ['x', 'a\nb'] })).rejects.toMatchObject({ code: 'UNSENDABLE' })
})
