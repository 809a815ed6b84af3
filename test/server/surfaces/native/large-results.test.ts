import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Chat {
  choices: { message: { content: string; role: string } }[]
  usage: { completion_tokens: number }
}
interface Node {
  node_id: string
  status: string
  cached: boolean
  attempts: number
  job_id: string
  result: Chat
  resolved_inputs: { messages: { content: string }[]; max_tokens?: unknown }
  error: { code: string; message: string } | null
}
interface Execution {
  id: string
  status: string
  outputs: Record<string, { result: Chat; values: Record<string, unknown> }> | null
  nodes: Node[]
}

const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
/** The node before, whose result is this many kilobytes of text. */
const wordy = (kb = 5_000, more: object = {}) => chat(`mode:wordy,kb=${kb}`, more)
const said = (kb: number) => 'Ω123456\n'.repeat(kb * 100)

async function ended(id: string, include = 'nodes'): Promise<Execution> {
  const response = await app.fetch(`/api/workflow-executions/${id}?wait=60&include=${include}`)
  return ((await response.json()) as { execution: Execution }).execution
}

async function run(nodes: object, more: object = {}): Promise<Execution> {
  const names = Object.keys(nodes)
  const edges = names.slice(1).map((to, at) => ({ from: names[at], to }))
  const response = await app.fetch('/api/workflows/run', { body: { dag: { nodes, edges }, ...more } })
  const answer = (await response.json()) as { execution: Execution }
  expect([response.status, answer]).toEqual([202, expect.anything()])
  return ended(answer.execution.id)
}

const nodeOf = ({ nodes }: Execution, name: string) => nodes.find(({ node_id }) => node_id === name)!
async function node(execution: Execution, name: string): Promise<Node> {
  const response = await app.fetch(`/api/workflow-executions/${execution.id}/nodes/${name}`)
  return ((await response.json()) as { node: Node }).node
}

/** The existing result files. */
const files = () => {
  const folder = join(app.dataDir, 'results', app.organizationId)
  return readdirSync(folder).map(name => join(folder, name))
}

/**
 * The longest time slice of the event loop meanwhile, in milliseconds of CPU time of this thread: other processes share
 * the machine.
 */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  const spent = () => Object.values(process.threadCpuUsage()).reduce((sum, part) => sum + part)
  let [most, last, going] = [0, spent(), true]
  const turn = () => {
    const now = spent()
    most = Math.max(most, now - last)
    last = now
    if (going) setTimeout(turn, 0)
  }
  turn()
  await work()
  going = false
  return most / 1000
}

describe('a node after a result of 5 MB', () => {
  test('refers to parts of it, as text and as values', async () => {
    const done = await run({
      a: wordy(),
      b: chat('It was the ${nodes.a.result.choices[0].message.role}, of ${nodes.a.outputs.usage}.', {
        inputs: {
          messages: [
            { role: 'user', content: 'It was the ${nodes.a.result.choices[0].message.role}: ${nodes.a.status}.' },
          ],
          max_tokens: '${nodes.a.result.usage.completion_tokens}',
        },
      }),
    })
    expect(done.status).toBe('completed')
    const { resolved_inputs } = await node(done, 'b')
    expect(resolved_inputs.messages[0]!.content).toBe('It was the assistant: completed.')
    expect(resolved_inputs.max_tokens).toBe(nodeOf(done, 'a').result.usage.completion_tokens)
  })

  test('finds a part by any name that a node may have', async () => {
    const done = await run({
      '1': wordy(300),
      'my node': wordy(310),
      b: chat('${nodes.1.result.choices[0].message.role} ${nodes["my node"].result.choices.0.message.role}'),
    })
    expect((await node(done, 'b')).resolved_inputs.messages[0]!.content).toBe('assistant assistant')
  })

  test('fails with the usual message where a part is missing', async () => {
    const done = await run({ a: wordy(), b: chat('x ${nodes.a.result.choices[3].message.content}') })
    expect(nodeOf(done, 'b').error).toMatchObject({
      code: 'unresolved_reference',
      message: "${nodes.a.result.choices[3].message.content}: index 3 not found ('choices' has 1 item).",
    })
  })

  test('gets no more text of it than of other results', async () => {
    const done = await run({ a: wordy(), b: chat('x ${nodes.a.result.choices[0].message.content}') })
    expect(nodeOf(done, 'b').error).toMatchObject({
      code: 'invalid_value',
      message: 'The references of this node make more than 1 MiB of text.',
    })
  })

  test('gets one text of it whole', async () => {
    const done = await run({ a: wordy(300), b: chat('${nodes.a.result.choices[0].message.content}') })
    expect((await node(done, 'b')).resolved_inputs.messages[0]!.content).toBe(said(300))
  })

  test('starts without blocking the event loop', async () => {
    const edges = [{ from: 'a', to: 'b' }]
    const nodes = { a: wordy(15_000), b: chat('It was the ${nodes.a.result.choices[0].message.role}.') }
    const turns: number[] = []
    for (let attempt = 0; attempt < 5; attempt++)
      turns.push(
        await longestTurn(async () => {
          const response = await app.fetch('/api/workflows/run', { body: { dag: { nodes, edges } } })
          const { execution } = (await response.json()) as { execution: Execution }
          const path = `/api/workflow-executions/${execution.id}?wait=60&include=none`
          expect((await app.fetch(path, { method: 'HEAD' })).status).toBe(200)
        }),
      )
    process.stdout.write(`large results: longest turns of the loop ${turns.map(ms => ms.toFixed(1)).join(', ')} ms\n`)
    // Parsing alone takes four times as long.
    expect(Math.min(...turns)).toBeLessThan(25)
  })
})

describe('a large result is shown', () => {
  let done: Execution
  beforeAll(async () => {
    done = await run({
      whole: wordy(400),
      part: wordy(500, { outputs: ['choices[0].message.role', 'result.usage'] }),
      small: chat('Hello'),
    })
    expect(done.status).toBe('completed')
  })

  test('whole in its execution, among the outputs and with its node', () => {
    expect(done.outputs!.whole!.result.choices[0]!.message.content).toBe(said(400))
    expect(done.outputs!.whole!.values).toEqual({})
    expect(nodeOf(done, 'whole').result).toEqual(done.outputs!.whole!.result)
    expect(done.outputs!.small!.result.choices[0]!.message.content.length).toBeGreaterThan(0)
  })

  test('cut down to what its node keeps', () => {
    const kept = { choices: [{ message: { role: 'assistant' } }], usage: expect.anything() }
    expect(done.outputs!.part!.result).toEqual(kept)
    expect(nodeOf(done, 'part').result).toEqual(done.outputs!.part!.result)
    expect(done.outputs!.part!.values).toEqual({
      'choices[0].message.role': 'assistant',
      'result.usage': done.outputs!.part!.result.usage,
    })
  })

  test('whole with its node and with its job, with its Content-Length', async () => {
    expect((await node(done, 'part')).result.choices[0]!.message.content).toBe(said(500))
    const response = await app.fetch(`/api/jobs/${nodeOf(done, 'part').job_id}`)
    const text = await response.text()
    expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(text)))
    const job = JSON.parse(text) as { status: string; result: Chat; inputs: { messages: object[] } }
    expect(job.status).toBe('completed')
    expect(job.result.choices[0]!.message.content).toBe(said(500))
    expect(job.inputs.messages).toHaveLength(1)
  })

  test('among the members of its request', async () => {
    const id = nodeOf(done, 'part').job_id.replace('job_', 'q_')
    const answer = (await (await app.fetch(`/slug/requests/${id}`)).json()) as Chat & Record<string, unknown>
    expect(answer).toMatchObject({ request_id: id, status: 'completed', model_id: 'fake' })
    expect(answer.choices[0]!.message.content).toBe(said(500))
    const status = (await (await app.fetch(`/slug/requests/${id}/status`)).json()) as Record<string, unknown>
    expect(status).toMatchObject({ status: 'COMPLETED', request_id: id })
    expect(status).not.toHaveProperty('choices')
    const fal = (await (await app.fetch(`/fal/queue/any/requests/${id}`)).json()) as Chat
    expect(fal.choices[0]!.message.content).toBe(said(500))
  })

  test('not in events, which only say that it exists', async () => {
    const over = new AbortController()
    const response = await app.fetch(`/api/workflow-executions/${done.id}/events`, { signal: over.signal })
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      if (text.includes('\n\n')) break
    }
    over.abort()
    expect(text.length).toBeLessThan(100_000)
    const record = JSON.parse(/^data: (.*)$/m.exec(text)![1]!) as { data: { execution: Execution } }
    const { nodes } = record.data.execution
    expect(nodes.map(({ status, result }) => [status, result === null])).toEqual([
      ['completed', true],
      ['completed', true],
      ['completed', false],
    ])
  })
})

describe('a large result is reused', () => {
  test('by equal work', async () => {
    const nodes = { a: wordy(450, { cache: 'use' }) }
    const first = await run(nodes)
    const before = files().length
    const second = await run(nodes)
    expect([nodeOf(first, 'a').cached, nodeOf(second, 'a').cached]).toEqual([false, true])
    expect(second.outputs!.a!.result).toEqual(first.outputs!.a!.result)
    expect(files()).toHaveLength(before)
  })

  test('by a retry, and is kept when the first execution is deleted', async () => {
    const nodes = { a: wordy(460), b: chat('mode:status,code=400,text=no ${nodes.a.result.choices[0].message.role}') }
    const failed = await run(nodes)
    expect(failed.status).toBe('failed')
    const response = await app.fetch(`/api/workflow-executions/${failed.id}/retry`, { body: { from: 'failed' } })
    const { execution } = (await response.json()) as { execution: Execution }
    const again = await ended(execution.id)
    expect(nodeOf(again, 'a')).toMatchObject({ cached: true, job_id: nodeOf(failed, 'a').job_id })
    const before = files().length
    expect((await app.fetch(`/api/workflow-executions/${failed.id}`, { method: 'DELETE' })).status).toBe(200)
    expect((await node(again, 'a')).result.choices[0]!.message.content).toBe(said(460))
    expect((await app.fetch(`/api/workflow-executions/${again.id}`, { method: 'DELETE' })).status).toBe(200)
    await expect.poll(() => files().length).toBe(before - 1)
    expect((await app.fetch(`/api/jobs/${nodeOf(failed, 'a').job_id}`)).status).toBe(410)
  })
})

test('a result removed while it is read is reported as no longer kept', async () => {
  const before = new Set(files())
  const done = await run({ a: wordy(300) })
  for (const path of files()) if (!before.has(path)) rmSync(path)
  for (const path of [`/api/workflow-executions/${done.id}`, `/api/jobs/${nodeOf(done, 'a').job_id}`]) {
    const response = await app.fetch(path)
    expect([response.status, await response.json()]).toMatchObject([410, { error: { code: 'output_expired' } }])
  }
})

test('the result of a node has at most 16 MiB: a larger one fails at once, and leaves no file', async () => {
  const before = files().length
  const done = await run({ fits: wordy(15_900), a: wordy(16_800), b: chat('after') })
  expect(nodeOf(done, 'fits').status).toBe('completed')
  expect(nodeOf(done, 'a')).toMatchObject({ status: 'failed', attempts: 1 })
  expect(nodeOf(done, 'a').error).toMatchObject({
    code: 'payload_too_large',
    message: expect.stringMatching(/^The result of node 'a' has 16\.\d MiB; the limit is 16 MiB\./),
  })
  expect(nodeOf(done, 'b').status).toBe('skipped')
  expect(files()).toHaveLength(before + 1)
})
