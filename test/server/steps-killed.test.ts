import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { freePort } from '../_engine.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'infer-test-'))
let child: ChildProcess | undefined

/** Ends the server as a crash does. */
async function kill(): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}
afterAll(async () => {
  await kill()
  rmSync(dataDir, { recursive: true, force: true })
})

interface Node {
  node_id: string
  status: string
  result: unknown
}

const configPath = join(dataDir, 'infer.yaml')
writeFileSync(configPath, 'limits: { min_free_disk: 0, ballast: 0 }\n')
const address = `127.0.0.1:${await freePort()}`
const flags = ['--data-dir', dataDir, '--config', configPath, '--listen', address]

async function start(): Promise<void> {
  child = spawn(process.execPath, [resolve('dist/main.cjs'), 'serve', ...flags], { stdio: 'ignore' })
  const ready = () => fetch(`http://${address}/readyz`).then(({ status }) => status, String)
  await expect.poll(ready, { timeout: 40_000 }).toBe(200)
}

async function call<Answer>(path: string, body?: object): Promise<Answer> {
  const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
  const response = await fetch(`http://${address}${path}`, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return (await response.json()) as Answer
}

// Each match takes a pass over the rest of the text, all together about a second.
const slow = { text: '${nodes.said.result.text}', pattern: '(?s)a.*z|a', all: true }
const nodes = {
  said: { task: 'text/template', inputs: { template: 'a'.repeat(9_000) } },
  slow: { task: 'text/extract', inputs: slow },
  counted: {
    task: 'json/select',
    inputs: { input: '${nodes.slow.result.value}', steps: [{ count: true }] },
    outputs: ['value'],
  },
}

test('a step that runs when the server is killed runs again, and those before it do not', {
  timeout: 120_000,
}, async () => {
  await start()
  const { execution } = await call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes } })
  const read = async (query = '') => {
    const answer = await call<{ execution: { status: string; nodes: Node[] } }>(
      `/api/workflow-executions/${execution.id}${query}`,
    )
    const statuses = Object.fromEntries(answer.execution.nodes.map(({ node_id, status }) => [node_id, status]))
    return { ...answer.execution, statuses }
  }
  await expect.poll(async () => (await read()).statuses.slow, { timeout: 30_000, interval: 20 }).toBe('running')
  await kill()
  await start()
  const ended = await read('?wait=60')
  expect(ended.statuses).toEqual({ said: 'completed', slow: 'completed', counted: 'completed' })
  expect(ended.nodes.find(({ node_id }) => node_id === 'counted')!.result).toEqual({ value: 9_000 })
  const { jobs } = await call<{ jobs: { task: string; claims?: number; attempt?: number; status: string }[] }>(
    '/api/jobs',
  )
  expect(jobs.map(({ task, status }) => `${task} ${status}`).toSorted()).toEqual([
    'json/select completed',
    'text/extract completed',
    'text/template completed',
  ])
})

test('a workflow within another goes on after kills at any time, and is run once', { timeout: 120_000 }, async () => {
  await call('/api/workflows', { name: 'Inner', dag: { nodes } })
  const outer = {
    sub: { task: 'workflow/run', inputs: { workflow: 'Inner' } },
    after: { task: 'text/template', inputs: { template: '${nodes.sub.result.counted.values.value} matches' } },
  }
  const { execution } = await call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes: outer } })
  // Between the creation of the parent and that of the child, or soon after.
  await kill()
  await start()
  const path = `/api/workflow-executions/${execution.id}`
  type Answer = { execution: { status: string; nodes: (Node & { child_execution_id: string | null })[] } }
  const nodeOf = async (id: string, query = '') =>
    (await call<Answer>(`${path}${query}`)).execution.nodes.find(({ node_id }) => node_id === id)!
  await expect.poll(async () => (await nodeOf('sub')).child_execution_id, { timeout: 30_000 }).not.toBeNull()
  await kill()
  await start()
  expect(await nodeOf('after', '?wait=60')).toMatchObject({ status: 'completed', result: { text: '9000 matches' } })
  const { executions } = await call<{ executions: { trigger: string; status: string }[] }>(
    '/api/workflow-executions?limit=2',
  )
  expect(executions).toMatchObject([
    { trigger: 'workflow', status: 'completed' },
    { trigger: 'api', status: 'completed' },
  ])
})
