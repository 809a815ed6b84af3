import type { ServerResponse } from 'node:http'
import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
let held: ServerResponse | undefined
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    if (!seen.body.stream && JSON.stringify(seen.body).includes('hold')) held = response
    else well(seen, response)
  })
  app = await startApp({ models: [engine.model('far')], limits: { held_bodies: '8MiB' } })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const chat = (text: string, bytes: number): Buffer =>
  Buffer.from(JSON.stringify({ model: 'far', messages: [{ role: 'user', content: text + 'x'.repeat(bytes) }] }))

/** The status of a request over a connection that the server closes after its answer, or the socket error. */
const send = (body: Buffer, token = app.secret): Promise<number | string> =>
  new Promise(resolve => {
    const asked = request(
      `${app.url}/v1/chat/completions`,
      {
        method: 'POST',
        agent: false,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-length': body.length,
        },
      },
      response => {
        // A client that is still sending may see the end of the connection before the answer.
        if (!asked.writableFinished) resolve(`${response.statusCode} before the body was sent`)
        response.resume().once('end', () => resolve(response.statusCode!))
      },
    )
    asked.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    asked.end(body)
  })

test('a body without memory for it gets its 503, and a wrong token its 401, however large', async () => {
  const first = send(chat('hold', 6 << 20))
  await engine.until(() => held !== undefined)
  for (let at = 0; at < 5; at++) expect(await send(chat('more', 24 << 20))).toBe(503)
  expect(await send(chat('more', 24 << 20), 'sk-wrong')).toBe(401)
  well({ path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: 'hold' }] } } as never, held!)
  expect(await first).toBe(200)
  expect(await send(chat('more', 2 << 20))).toBe(200)
})
