import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { full, killsOf } from '../_full.ts'
import { lastingPort, openHome, until } from './_home.ts'

const graphs = full ? 50 : 20
const kills = killsOf(5, 12)

/** A reproducible sequence of numbers from 0 to 1. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const digest = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)

/** An engine whose answer is a function of the question, and that counts each question. */
async function openOracle(random: () => number) {
  const asked = new Map<string, number>()
  const server = createServer((req, res) => {
    void (async () => {
      const { messages } = (await json(req)) as { messages: { content: string }[] }
      const question = messages[0]!.content
      asked.set(question, (asked.get(question) ?? 0) + 1)
      await delay(5 + random() * 40)
      const message = { role: 'assistant', content: digest(question) }
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage }))
    })().catch(() => res.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Graph {
  dag: { nodes: Record<string, object>; edges: { from: string; to: string }[] }
  /** The expected question and answer of each node. */
  expected: Map<string, { question: string; answer: string }>
  parents: Map<string, string[]>
}

/** A graph of 1 to 40 nodes; each sends its own name and the answers of its parents. */
function randomGraph(name: string, random: () => number): Graph {
  const size = 1 + Math.floor(random() * 40)
  const dag: Graph['dag'] = { nodes: {}, edges: [] }
  const expected: Graph['expected'] = new Map()
  const parents: Graph['parents'] = new Map()
  for (let at = 0; at < size; at++) {
    const id = `n${at}`
    const before = Array.from({ length: at }, (_, one) => `n${one}`).filter(() => random() < 2.5 / size)
    parents.set(id, before)
    for (const from of before) dag.edges.push({ from, to: id })
    const references = before.map(one => `\${nodes.${one}.result.choices[0].message.content}`)
    dag.nodes[id] = {
      model_id: 'oracle',
      task: 'std/chat-completion',
      inputs: { messages: [{ role: 'user', content: `${name} ${id} ${references.join(' ')}` }] },
    }
    const question = `${name} ${id} ${before.map(one => expected.get(one)!.answer).join(' ')}`
    expected.set(id, { question, answer: digest(question) })
  }
  return { dag, expected, parents }
}

interface Node {
  node_id: string
  status: string
  started_at: number
  result: { choices: { message: { content: string } }[] } | null
}

test(`${graphs} random graphs survive ${kills} kill -9: no node runs before its parents, no completed node runs again`, {
  timeout: 240_000,
}, async () => {
  const random = seeded(20_261_121)
  await using oracle = await openOracle(random)
  await using home = openHome()
  home.configure({
    models: [{ id: 'oracle', engine: 'remote', url: oracle.url, concurrency: 8, tasks: ['std/chat-completion'] }],
  })
  const port = await lastingPort()
  const start = () => home.serve(['--listen', `127.0.0.1:${port}`])
  let server = start()
  await server.ready

  const runs = Array.from({ length: graphs }, (_, at) => randomGraph(`g${at}`, random))
  const ids: string[] = []
  for (const [at, { dag }] of runs.entries()) {
    const answer = await server.fetch('/api/workflows/run', {
      body: { dag },
      headers: { 'idempotency-key': `graph-${at}` },
    })
    expect(answer.status).toBe(202)
    ids.push(((await answer.json()) as { execution: { id: string } }).execution.id)
  }
  const read = async (id: string): Promise<{ status: string; nodes: Node[] }> =>
    ((await (await server.fetch(`/api/workflow-executions/${id}`)).json()) as { execution: never }).execution

  /** How often a question had been sent when its node was seen to be completed. */
  const settled = new Map<string, number>()
  const total = runs.reduce((sum, { expected }) => sum + expected.size, 0)
  for (let round = 0; round < kills; round++) {
    const wanted = Math.min(total, oracle.asked.size + Math.ceil(total / (kills + 2)))
    await until('some work', () => oracle.asked.size >= wanted)
    const [at] = [Math.floor(random() * graphs)]
    const { nodes } = await read(ids[at]!)
    for (const { node_id, status } of nodes) {
      const { question } = runs[at]!.expected.get(node_id)!
      if (status === 'completed' && !settled.has(question)) settled.set(question, oracle.asked.get(question)!)
    }
    await delay(random() * 30)
    server.kill('SIGKILL')
    await server.ended
    server = start()
    await server.ready
  }

  const wrong: string[] = []
  for (const [at, id] of ids.entries()) {
    const done = await until(
      `the end of graph ${at}`,
      async () => {
        const now = await read(id)
        return now.status === 'running' || now.status === 'pending' ? undefined : now
      },
      60_000,
    )
    const { expected, parents } = runs[at]!
    if (done.status !== 'completed') wrong.push(`g${at} is ${done.status}`)
    const started = new Map(done.nodes.map(({ node_id, started_at }) => [node_id, started_at]))
    for (const { node_id, result } of done.nodes) {
      if (result?.choices[0]?.message.content !== expected.get(node_id)!.answer) wrong.push(`g${at} ${node_id}`)
      for (const before of parents.get(node_id)!)
        if (started.get(node_id)! < started.get(before)!) wrong.push(`g${at} ${node_id} before ${before}`)
    }
  }
  expect(wrong).toEqual([])
  for (const [question, times] of settled) expect([question, oracle.asked.get(question)]).toEqual([question, times])
  // Every question belongs to a graph: a node that ran before its parents would have sent another.
  const questions = new Set(runs.flatMap(({ expected }) => [...expected.values()].map(({ question }) => question)))
  expect([...oracle.asked.keys()].filter(question => !questions.has(question))).toEqual([])
  expect(oracle.asked.size).toBe(total)
  const repeated = [...oracle.asked.values()].reduce((sum, times) => sum + times - 1, 0)
  expect(repeated).toBeLessThanOrEqual(kills * 8)
})
