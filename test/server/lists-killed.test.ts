import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../core/store/sqlite/check.ts'
import { openAsIs } from '../../core/store/sqlite/database.ts'
import { killsOf } from '../_full.ts'
import { openKillable } from './_killable.ts'

const kills = killsOf(3, 100)
/** How many items of each list may end between two kills; of the first list usually fewer do. */
const [textsPerKill, visitsPerKill] = [25, 1]
const [textCount, visitCount] = [textsPerKill * (kills + 1), visitsPerKill * (kills + 1)]
const concurrency = 4

/** An engine that answers a prompt with its number, counts its tokens by it, and gets as far as the kills have got. */
async function openEngine() {
  let killed = 0
  let answered = 0
  const held = new Set<() => void>()
  const server = createServer((request, response) => {
    const answer = async () => {
      const { prompt } = (await json(request)) as { prompt: string }
      const [name, digits] = prompt.split(' ') as [string, string]
      const isDue = () => name !== 'text' || Number(digits) < textsPerKill * (killed + 1)
      while (!isDue()) await new Promise<void>(resolve => held.add(resolve))
      await delay(5 + Math.random() * 25)
      answered++
      const usage = { prompt_tokens: Number(digits) + 1, completion_tokens: 0, total_tokens: Number(digits) + 1 }
      const choices = [{ index: 0, text: `<${prompt}>`, finish_reason: 'stop', logprobs: null }]
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ id: 'x', object: 'text_completion', created: 1, model: 'm', choices, usage }))
    }
    void answer().catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    answered: () => answered,
    /** The server was killed once more. */
    killed(): void {
      killed++
      for (const resolve of held) resolve()
      held.clear()
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Node {
  node_id: string
  status: string
  items: { total: number; completed: number; failed: number; running: number } | null
}
interface Execution {
  id: string
  status: string
  error: object | null
  cost: number
  nodes: Node[]
  outputs: Record<string, { values: Record<string, unknown[]> }> | null
}

const completion = (prompt: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/completion',
  cache: 'off',
  inputs: { prompt, max_tokens: 1 },
  ...more,
})
const text = (template: string, more: object = {}) => ({ task: 'text/template', inputs: { template }, ...more })

/** What runs for each visit: a wait for an event, then one of two ways, then a join. */
const visit = {
  wait: { task: 'wait/event', inputs: { title: 'Visit ${input.number}', timeout: 80_000 } },
  even: completion('even ${input.number}', {
    when: {
      all: [
        { value: '${input.even}', equals: true },
        { value: '${nodes.wait.result.body.nonce}', exists: true },
      ],
    },
  }),
  odd: text('odd ${input.number}', {
    when: { not: { value: '${input.even}', equals: true } },
    inputs: { template: 'odd ${input.number} ${nodes.wait.result.body.nonce}' },
  }),
  join: text('${nodes.even.result.choices[0].text}${nodes.odd.result.text}|${nodes.wait.result.body.nonce}', {
    join: 'any',
    outputs: ['text'],
  }),
}

test(`${kills} kill -9 while lists run: each item has its result once and in order, and is billed once`, {
  timeout: 120_000 + kills * 20_000,
}, async () => {
  await using engine = await openEngine()
  const price = { input_per_million_tokens: 1_000_000 }
  await using server = await openKillable([
    { id: 'fake', engine: 'remote', url: engine.url, concurrency, price, tasks: ['std/completion'] },
  ])
  const { start, launch, kill, call, dataDir } = server
  await start()
  const parameters = { number: { type: 'integer' }, even: { type: 'boolean' } }
  const { workflow } = await call<{ workflow: { id: string } }>('/api/workflows', {
    name: 'Visit',
    parameters,
    dag: { nodes: visit },
  })
  expect(workflow).toBeDefined()
  const texts = Array.from({ length: textCount }, (_, at) => `text ${at}`)
  const visits = Array.from({ length: visitCount }, (_, at) => ({ number: at, even: at % 2 === 0 }))
  const begun = await call<{ execution: Execution }>('/api/workflows/run', {
    timeout: 86_400,
    dag: {
      nodes: {
        each: completion('${item}', {
          for_each: '${input.texts}',
          max_items: 10_000,
          max_parallel: 10,
          outputs: ['[*].choices[0].text'],
        }),
        visits: {
          task: 'workflow/run',
          for_each: '${input.visits}',
          max_parallel: 2,
          inputs: { workflow: workflow.id, input: { number: '${item.number}', even: '${item.even}' } },
          outputs: ['[*].join.values.text'],
        },
        end: text('${nodes.each.result[0].choices[0].text} ${nodes.visits.result[0].join.values.text}'),
      },
    },
    input_params: { texts, visits },
  })
  expect(begun).toHaveProperty('execution')
  const { id } = begun.execution

  /** Events that were acknowledged, by visit. */
  const acknowledged = new Map<number, string>()
  const surprises = new Set<string>()
  const over = new AbortController()
  const patiently = <Answer>(path: string): Promise<Answer | undefined> => call<Answer>(path).catch(() => undefined)
  let killed = 0
  /** Sends events to whatever waits, as far as the kills have got, each time with another content. */
  async function sendEvents(): Promise<void> {
    for (; !over.signal.aborted; await delay(20)) {
      const page = await patiently<{ executions?: Execution[] }>(
        `/api/workflow-executions?workflow_id=${workflow.id}&status=running`,
      )
      for (const child of page?.executions ?? []) {
        const found = await patiently<{
          node?: { status: string; answer_url: string | null }
        }>(`/api/workflow-executions/${child.id}/nodes/wait`)
        const job = await patiently<{ execution?: { input_params: { number: number } } }>(
          `/api/workflow-executions/${child.id}`,
        )
        const number = job?.execution?.input_params.number
        if (number === undefined || found?.node?.answer_url == null) continue
        if (number >= visitsPerKill * (killed + 1)) continue
        const nonce = Math.random().toString(36).slice(2)
        const body = JSON.stringify({ nonce })
        const headers = { 'content-type': 'application/json' }
        const status = await fetch(found.node.answer_url, { method: 'POST', headers, body }).then(
          answer => answer.status,
          () => 0,
        )
        if (status === 200 && acknowledged.has(number)) surprises.add(`the event of ${number} was accepted twice`)
        if (status === 200) acknowledged.set(number, nonce)
        else if (![0, 404, 409, 503].includes(status)) surprises.add(`an event got ${status}`)
      }
    }
  }
  const sender = sendEvents()

  let during = 0
  while (killed < kills) {
    const before = engine.answered()
    const answers = () => engine.answered() - before
    // A job that runs at five kills fails, so one that ran at three of them ends first.
    while (mostCrashes(dataDir) > 2) await delay(5)
    if (killed % 4 === 3) {
      // While it starts, and repairs what the last kill has left.
      await kill()
      launch()
      await delay(Math.random() * 1_500)
    } else {
      const deadline = performance.now() + 2_000
      while (answers() === 0 && performance.now() < deadline) await delay(1)
      await delay(Math.random() * 100)
    }
    await kill()
    if (answers() > 0) during++
    killed++
    engine.killed()
    await start()
  }
  let { execution } = await call<{ execution: Execution }>(`/api/workflow-executions/${id}`)
  expect(execution.status).toBe('running')
  await expect
    .poll(
      async () => {
        ;({ execution } = await call<{ execution: Execution }>(`/api/workflow-executions/${id}`))
        return execution.status
      },
      { timeout: 120_000, interval: 50 },
    )
    .not.toBe('running')
  over.abort()
  await sender
  expect([...surprises]).toEqual([])
  expect([execution.status, execution.error]).toEqual(['completed', null])
  expect(during).toBeGreaterThan(kills / 2)

  const counted = (total: number) => ({ total, completed: total, failed: 0, running: 0, waiting: 0 })
  expect(execution.nodes.map(node => [node.node_id, node.status, node.items])).toEqual([
    ['each', 'completed', counted(textCount)],
    ['visits', 'completed', counted(visitCount)],
    ['end', 'completed', null],
  ])
  const valuesOf = (node: string) => Object.values(execution.outputs![node]!.values)[0] as string[]
  expect(valuesOf('each')).toEqual(texts.map(one => `<${one}>`))
  const results = valuesOf('visits').map(value => value.split('|') as [string, string])
  expect(results.map(([said]) => said)).toEqual(
    visits.map(({ number, even }, at) => (even ? `<even ${number}>` : `odd ${number} ${results[at]![1]}`)),
  )
  // An event that was acknowledged is the one that counts.
  for (const [number, nonce] of acknowledged) expect([number, results[number]![1]]).toEqual([number, nonce])

  await kill()
  expect((await checkDatabase(dataDir)).findings).toEqual([])
  using database = openDatabase(dataDir)
  const bills = database.all<{ job_id: string; cost: number }>('SELECT job_id, cost FROM ledger WHERE cost > 0')
  expect(new Set(bills.map(bill => bill.job_id)).size).toBe(bills.length)
  const items = database.all<{ item: number; cost: number }>(
    `SELECT item, cost FROM execution_items JOIN ledger USING (job_id) WHERE cost > 0 ORDER BY item`,
  )
  expect(items).toEqual(texts.map((_, item) => ({ item, cost: (item + 1) * 1e6 })))
  const evens = visits.filter(({ even }) => even).reduce((sum, { number }) => sum + number + 1, 0)
  expect(execution.cost).toBe((textCount * (textCount + 1)) / 2 + evens)
  const ends = database.all<{ count: number }>(
    `SELECT count(*) AS count FROM events JOIN executions ON executions.number = execution
      WHERE node IS NULL AND type LIKE 'workflow_execution.%' AND type NOT LIKE '%.created' AND type NOT LIKE '%.started'
      GROUP BY execution`,
  )
  expect(ends).toEqual(Array.from({ length: 1 + visitCount }, () => ({ count: 1 })))
  process.stdout.write(
    `lists: ${kills} kills, ${during} of them while items ended; ${textCount} items and ${visitCount} nested executions ` +
      `once each, ${engine.answered() - textCount - Math.ceil(visitCount / 2)} requests repeated\n`,
  )
})

/** How often an unfinished job was running when the server was killed, at most. */
function mostCrashes(dataDir: string): number {
  using database = openDatabase(dataDir)
  const [found] = database.all<{ most: number | null }>(
    'SELECT max(crashes) AS most FROM jobs WHERE finished_at IS NULL',
  )
  return found!.most ?? 0
}

function openDatabase(dataDir: string) {
  const database = openAsIs(`${dataDir}/infer.db`, { readonly: true })
  return {
    all: <Row>(sql: string) => database.prepare(sql).all() as Row[],
    [Symbol.dispose]: () => void database.close(),
  }
}
