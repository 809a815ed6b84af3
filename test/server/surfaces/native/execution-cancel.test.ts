import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

// T-CAN-4: an execution is ended at a random time, by a cancel or by its deadline. It has one end, and so has each of
// its nodes; the engine request is aborted, and the engine killed if it does not react; aborted work is not charged.

/** A reproducible sequence of numbers from 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
const random = seeded(20_261_122)

interface Asked {
  /** The first word of the question: the execution that it belongs to. */
  name: string
  goneAt: number | null
  over: boolean
}

/** An engine with slow answers that records which clients disconnected and when. */
async function openSlowEngine() {
  const asked: Asked[] = []
  const server = createServer((req, res) => {
    void (async () => {
      const { messages } = (await json(req)) as { messages: { content: string }[] }
      const [name, ms] = messages[0]!.content.split(' ')
      const one: Asked = { name: name!, goneAt: null, over: false }
      asked.push(one)
      res.once('close', () => {
        if (!one.over) one.goneAt = performance.now()
        one.over = true
      })
      await delay(Number(ms))
      if (one.over) return
      one.over = true
      const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }]
      const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
    })().catch(() => res.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, asked, server }
}

let engine: Awaited<ReturnType<typeof openSlowEngine>>
let app: TestApp
beforeAll(async () => {
  engine = await openSlowEngine()
  const remote = { id: 'slow', engine: 'remote', url: engine.url, concurrency: 16, tasks: ['std/chat-completion'] }
  const draws = fakeModel('draws', [], { tasks: ['slug/text-to-image'], concurrency: 1 })
  app = await startApp({ models: [remote, draws], limits: { cancel_grace: '500ms' } })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  engine.server.closeAllConnections()
  engine.server.close()
})

interface Execution {
  id: string
  status: string
  usage: { input_tokens: number; output_tokens: number }
  cost: number
  nodes: { node_id: string; status: string; job_id: string | null }[]
}
interface Job {
  status: string
  usage: object | null
  cost: number | null
}
const get = async <Body>(path: string): Promise<Body> => (await (await app.fetch(path)).json()) as Body
const read = async (path: string) => (await get<{ execution: Execution }>(`/api/workflow-executions/${path}`)).execution

async function begin(nodes: object, edges: object[] = [], more: object = {}): Promise<string> {
  const response = await app.fetch('/api/workflows/run', { body: { dag: { nodes, edges }, ...more } })
  const body = (await response.json()) as { execution: Execution }
  expect([response.status, body]).toEqual([202, expect.anything()])
  return body.execution.id
}

/** One to twelve nodes that take 20 to 320 ms each, some after others. */
function randomGraph(name: string): { nodes: Record<string, object>; edges: { from: string; to: string }[] } {
  const size = 1 + Math.floor(random() * 12)
  const nodes: Record<string, object> = {}
  const edges: { from: string; to: string }[] = []
  for (let at = 0; at < size; at++) {
    const content = `${name} ${20 + Math.floor(random() * 300)}`
    nodes[`n${at}`] = {
      model_id: 'slow',
      task: 'std/chat-completion',
      inputs: { messages: [{ role: 'user', content }] },
    }
    for (let from = 0; from < at; from++) if (random() < 1.5 / size) edges.push({ from: `n${from}`, to: `n${at}` })
  }
  return { nodes, edges }
}

async function sentEvents(id: string): Promise<{ type: string; node: string | null }[]> {
  const text = await (await app.fetch(`/api/workflow-executions/${id}/events?after=evt_0`)).text()
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, line]) => {
    const { type, data } = JSON.parse(line!) as { type: string; data: { node_id?: string } }
    return { type, node: data.node_id ?? null }
  })
}

/** Everything that has to hold of an ended execution, whatever ended it. */
async function checkEnd(id: string, ended: Execution): Promise<void> {
  const after = ended.status === 'completed' ? ['completed'] : ['completed', 'cancelled', 'timed_out']
  expect(ended.nodes.map(({ status }) => status).filter(status => !after.includes(status))).toEqual([])
  const done = ended.nodes.filter(({ status }) => status === 'completed').length
  expect([ended.usage, ended.cost]).toMatchObject([{ input_tokens: done, output_tokens: 2 * done }, 0])
  for (const { status, job_id } of ended.nodes) {
    if (job_id === null) continue
    const job = await get<Job>(`/api/jobs/${job_id}`)
    expect(job.status).toBe(status === 'completed' ? 'completed' : 'cancelled')
    if (status !== 'completed') expect(job.usage).toMatchObject({ input_tokens: 0, output_tokens: 0 })
  }
  const events = await sentEvents(id)
  const ends = (type: string) => /\.(completed|failed|cancelled|timed_out|skipped)$/.test(type)
  expect(events.filter(({ type, node }) => node === null && ends(type)).map(({ type }) => type)).toEqual([
    `workflow_execution.${ended.status}`,
  ])
  for (const { node_id, job_id } of ended.nodes)
    if (job_id !== null) expect(events.filter(({ type, node }) => node === node_id && ends(type))).toHaveLength(1)
}

test('40 executions cancelled at random times: each has one end, the engine is told at once, nothing is charged', {
  timeout: 120_000,
}, async () => {
  const took: number[] = []
  const ended = await Promise.all(
    Array.from({ length: 40 }, async (_, at) => {
      const name = `cancel-${at}`
      const { nodes, edges } = randomGraph(name)
      const wait = random()
      const id = await begin(nodes, edges)
      // Some have ended and some have just sent their request to the engine, however slow the machine is.
      if (at % 8 === 0) await read(`${id}?wait=60`)
      else if (at % 2 === 0) await delay(wait * 900)
      else {
        await expect.poll(() => engine.asked.some(one => one.name === name), { interval: 5 }).toBe(true)
        await delay(wait * 20)
      }
      const from = performance.now()
      // Twice at the same time, and once more: there is one end.
      const answers = await Promise.all(
        [1, 2].map(() => app.fetch(`/api/workflow-executions/${id}/cancel`, { body: {} })),
      )
      const again = await app.fetch(`/api/workflow-executions/${id}/cancel`, { body: {} })
      const now = await read(id)
      const status = now.status === 'completed' ? 409 : 200
      expect([...answers, again].map(answer => answer.status)).toEqual([status, status, status])
      await expect.poll(() => engine.asked.filter(one => one.name === name && !one.over)).toEqual([])
      for (const { goneAt } of engine.asked.filter(one => one.name === name)) if (goneAt) took.push(goneAt - from)
      return now
    }),
  )
  const statuses = new Set(ended.map(({ status }) => status))
  expect([...statuses].toSorted()).toEqual(['cancelled', 'completed'])
  // Late events have arrived by now.
  await delay(400)
  for (const one of ended) {
    expect(await read(one.id)).toEqual(one)
    await checkEnd(one.id, one)
  }
  took.sort((a, b) => a - b)
  const [median, last] = [took[took.length >> 1]!, took.at(-1)!]
  process.stdout.write(
    `cancel until engines were told (${took.length}): p50 ${median.toFixed(1)} ms, most ${last.toFixed(1)} ms\n`,
  )
  expect(took.length).toBeGreaterThan(10)
  // The limit is 500 ms; a loaded machine may take longer, and the line above prints the figure.
  expect(last).toBeLessThan(5_000)
})

test('the end of its time aborts the engine requests too, and ends the execution once', {
  timeout: 60_000,
}, async () => {
  const content = 'over 60000'
  const node = { model_id: 'slow', task: 'std/chat-completion', inputs: { messages: [{ role: 'user', content }] } }
  const id = await begin({ a: node, b: node, c: node }, [{ from: 'b', to: 'c' }], { timeout: 1 })
  await expect.poll(() => engine.asked.filter(({ name }) => name === 'over').length).toBe(2)
  const ended = await read(`${id}?wait=30`)
  const from = performance.now()
  expect(ended).toMatchObject({
    status: 'timed_out',
    error: { code: 'timeout', type: 'timeout_error', message: 'Execution exceeded its timeout of 1 s.' },
  })
  const those = engine.asked.filter(({ name }) => name === 'over')
  await expect.poll(() => those.every(({ over }) => over)).toBe(true)
  for (const { goneAt } of those) expect(goneAt! - from).toBeLessThan(5_000)
  expect(ended.nodes.map(({ status }) => status)).toEqual(['timed_out', 'timed_out', 'cancelled'])
  await checkEnd(id, ended)
})

test('an engine that continues cancelled work is killed after the grace period, and its other requests are tried again', {
  timeout: 60_000,
}, async () => {
  const draw = (prompt: string) => ({
    model_id: 'draws',
    task: 'slug/text-to-image',
    inputs: { prompt, width: 64, height: 64, seed: 1 },
  })
  const id = await begin({ a: draw('mode:ignore,ms=60000') })
  await expect.poll(async () => (await read(id)).nodes[0]!.status).toBe('running')
  const [{ job_id }] = (await read(id)).nodes as [Execution['nodes'][0]]
  await expect
    .poll(async () => (await get<{ progress: number | null }>(`/api/jobs/${job_id}`)).progress)
    .toBeGreaterThan(0)
  const killed = app.logged('An engine ignores cancelled requests and is killed')
  const from = performance.now()
  const answer = await app.fetch(`/api/workflow-executions/${id}/cancel`, { body: {} })
  expect([answer.status, performance.now() - from < 5_000]).toEqual([200, true])
  await killed
  expect(performance.now() - from).toBeLessThan(10_000)
  const next = await read(`${await begin({ a: draw('a cat') })}?wait=60`)
  expect(next.status).toBe('completed')
  expect(await read(id)).toMatchObject({
    status: 'cancelled',
    usage: { input_tokens: 0 },
    nodes: [{ status: 'cancelled' }],
  })
})
