import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { full } from '../../_full.ts'
import { until } from '../../gpu/launcher/_launch.ts'
import { temporaryFolder } from '../_infer.ts'
import { serve } from '../_serve.ts'
import { exitOf, secretOf, takeOver } from './_takeover.ts'

/** A server of chat completions that answers only when it is told to. */
async function startHolding() {
  const held: ServerResponse[] = []
  let most = 0
  const server = createServer((req, res) => {
    req.resume().once('end', () => {
      held.push(res)
      most = Math.max(most, held.length)
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const chunk = { choices: [{ index: 0, delta: { content: 'done' }, finish_reason: 'stop' }] }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Requests that it works on, and the most at a time. */
    running: () => held.length,
    most: () => most,
    /** Answers the oldest request. */
    answer: () => void held.shift()!.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`),
  }
}

const waitingFor = async (url: string, headers: Record<string, string>): Promise<number> => {
  const answer = await fetch(`${url}/api/system/status`, { headers })
  const { models } = (await answer.json()) as { models: { model_id: string; waiting: number }[] }
  return models.find(({ model_id }) => model_id === 'far')!.waiting
}

const cases = [
  { processes: 1, times: 1 },
  { processes: 1, times: 2 },
  { processes: 2, times: 1 },
]
test.for(full ? cases : cases.slice(0, 1))(
  'what the old server runs on a remote model leaves the new one only the other slots, until it ends: %o',
  async ({ processes, times }) => {
    const upstream = await startHolding()
    const dataDir = temporaryFolder()
    writeFileSync(
      join(dataDir, 'infer.yaml'),
      `listen: 127.0.0.1:0
gateway_processes: ${processes}
limits: {min_free_disk: 1MiB, ballast: 1MiB}
models: [{id: far, engine: remote, url: '${upstream.url}/v1', concurrency: 3}]
`,
    )
    const first = await serve(dataDir)
    const headers = { authorization: `Bearer ${secretOf(dataDir)}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'far', stream: true, messages: [{ role: 'user', content: 'Hello' }] })
    const ask = () =>
      fetch(`${first.url}/std/v1/chat/completions`, { method: 'POST', headers, body }).then(
        answer => answer.text(),
        String,
      )
    const before = [ask(), ask()]
    await until(() => upstream.running() === 2)
    const connection = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => connection.destroy())
    const statusOnKept = async () => {
      const [answer] = (await once(get(`${first.url}/api/me`, { agent: connection, headers }), 'response')) as [
        IncomingMessage,
      ]
      await text(answer)
      return answer.statusCode
    }
    expect(await statusOnKept()).toBe(200)
    for (let time = 0; time < times; time++) {
      const taken = await takeOver(dataDir)
      expect(taken.exitCode, taken.stderr).toBe(0)
    }
    expect(await statusOnKept()).toBe(200)
    const after = [ask(), ask(), ask()]
    for (const waiting of [2, 1, 0]) {
      await until(
        async () =>
          upstream.most() > 3 || (upstream.running() === 3 && (await waitingFor(first.url, headers)) === waiting),
      )
      expect(upstream.most()).toBe(3)
      if (waiting > 0) upstream.answer()
    }
    expect(await exitOf(first.child)).toBe(0)
    while (upstream.running() > 0) upstream.answer()
    for (const answer of await Promise.all([...before, ...after])) expect(answer).toContain('[DONE]')
    expect(upstream.most()).toBe(3)
  },
)
