import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { full } from '../../_full.ts'
import { startLoad } from '../../_takeover-load.ts'
import { temporaryFolder } from '../_infer.ts'
import { serve } from '../_serve.ts'
import { billed, exitOf, secretOf, startEngine, takeOver } from './_takeover.ts'

const configure = (dataDir: string, upstream: string, processes: number) =>
  writeFileSync(
    join(dataDir, 'infer.yaml'),
    `listen: 127.0.0.1:0
gateway_processes: ${processes}
limits: {min_free_disk: 1MiB, ballast: 1MiB}
models:
  - {id: far, engine: remote, url: '${upstream}/v1', concurrency: 400}
  - {id: priced, engine: remote, url: '${upstream}/v1', concurrency: 20, price: {input_per_million_tokens: 1000000}}
`,
  )

/** Units that a token may spend, and the most that one of its requests costs. */
const [spendLimit, mostOfOne] = [40_000, 1_100]

/** What is read of the answers. */
interface Content {
  organization: { id: string }
  secret: string
  spend: { token: { spent: number; held: number } }
}

/** A token with a spend limit, whose requests gateway processes answer too. */
async function openSpender(url: string, secret: string) {
  const call = async (path: string, by: string, fields?: object) => {
    const headers = { authorization: `Bearer ${by}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}${path}`, {
      headers,
      ...(fields && { method: 'POST', body: JSON.stringify(fields) }),
    })
    return { status: answer.status, content: (await answer.json()) as Content }
  }
  const { content: me } = await call('/api/me', secret)
  const created = await call(`/api/organizations/${me.organization.id}/tokens`, secret, {
    name: 'spender',
    scopes: ['user:read', 'user:write'],
    monthly_spend_limit: spendLimit,
  })
  const own = created.content.secret
  const messages = [{ role: 'user', content: 'a '.repeat(500) }]
  const ask = async () => (await call('/std/v1/chat/completions', own, { model: 'priced', messages })).status
  const stopping = new AbortController()
  return {
    /** Sends requests until `stop`. Resolves with how many were answered; others are refused at the limit. */
    async spend(): Promise<number> {
      let answered = 0
      while (!stopping.signal.aborted) {
        const status = await ask()
        if (status === 200) answered++
        else expect(status).toBe(429)
        await delay(100)
      }
      return answered
    },
    stop: () => stopping.abort(),
    /** Spends what is left. */
    async spendAll() {
      let answered = 0
      while ((await ask()) === 200) answered++
      const { content } = await call('/api/me', own)
      return { answered, ...content.spend.token }
    },
  }
}

test('servers with other numbers of gateway processes take over under load: nothing fails, and all is billed once', async () => {
  const dataDir = temporaryFolder()
  const upstream = await startEngine()
  configure(dataDir, upstream, 2)
  const first = await serve(dataDir)
  const secret = secretOf(dataDir)
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const spender = await openSpender(first.url, secret)
  const load = startLoad({
    url: first.url,
    secret,
    model: 'far',
    ...(full ? { streams: 200, perSecond: 300, jobsPerSecond: 50 } : { streams: 20, perSecond: 50, jobsPerSecond: 10 }),
  })
  const spending = [1, 2, 3, 4].map(() => spender.spend())
  const goesOn = async () => {
    const { answered } = load
    await expect.poll(() => load.answered).toBeGreaterThan(answered + 40)
  }
  await goesOn()
  // Gateway processes answer by themselves before each take-over.
  const local = async () => {
    const text = await (await fetch(`${first.url}/metrics`, { headers })).text()
    return Number(/^infer_front_requests_total (\d+)$/m.exec(text)![1])
  }
  await expect.poll(local).toBeGreaterThan(0)
  for (const processes of full ? [2, 1, 3, 2] : [3, 1]) {
    configure(dataDir, upstream, processes)
    const taken = await takeOver(dataDir)
    expect(taken.exitCode, taken.stderr).toBe(0)
    await goesOn()
    if (processes > 1) await expect.poll(local).toBeGreaterThan(0)
  }
  const total = await load.stop()
  expect(total.failures).toEqual([])
  expect(await exitOf(first.child)).toBe(0)
  spender.stop()
  const calls = (await Promise.all(spending)).reduce((sum, count) => sum + count, 0)
  const { answered, spent, held } = await spender.spendAll()
  expect(held).toBe(0)
  expect(spent).toBeGreaterThanOrEqual(spendLimit)
  expect(spent).toBeLessThan(spendLimit + mostOfOne)
  await expect.poll(() => billed(dataDir)).toBe(total.answered + calls + answered)
})
