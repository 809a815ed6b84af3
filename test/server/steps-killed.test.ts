import { afterAll, expect, test } from 'vitest'
import { openKillable } from './_killable.ts'

const server = await openKillable()
const { start, kill, call } = server
afterAll(() => server[Symbol.asyncDispose]())

interface Node {
  node_id: string
  status: string
  result: unknown
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
  await expect.poll(async () => (await read()).statuses.slow, { interval: 20 }).toBe('running')
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

test('a workflow within another goes on after kills at any time, and is run once', async () => {
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
  await expect.poll(async () => (await nodeOf('sub')).child_execution_id).not.toBeNull()
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
