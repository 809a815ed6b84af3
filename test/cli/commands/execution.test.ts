import { expect, test } from 'vitest'
import { infer } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

test('in a pipe, too, workflows are listed by name', async () => {
  const execution = { id: 'exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA', status: 'completed', created_at: 1, duration_ms: 1500 }
  const executions = [
    { ...execution, workflow_id: 'wf_1', workflow_name: 'Story' },
    { ...execution, workflow_id: null, workflow_name: 'Ad hoc' },
  ]
  const { url } = await fakeServer((_, response) => answer(response, 200, { executions, has_more: false }))
  const { exitCode, stdout } = await infer(['execution', 'list'], { env: { INFER_URL: url, INFER_TOKEN: 'x' } })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/ completed +Story /)
  expect(stdout).toMatch(/ completed +a file /)
  expect(stdout).not.toContain('wf_1')
})

test('the errors of an execution and of its nodes name commands, not routes', async () => {
  const id = 'exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA'
  const error = { code: 'model_not_found', message: 'Gone. GET /std/v1/models lists those that are here.' }
  const node = { node_id: 'a', task: 'std/chat-completion', model_id: 'x', status: 'failed', error }
  const execution = { id, status: 'failed', created_at: 1, error, nodes: [node] }
  const { url } = await fakeServer(({ path }, response) =>
    answer(response, 200, path.includes(id) ? { execution } : { executions: [execution], has_more: false }),
  )
  const env = { INFER_URL: url, INFER_TOKEN: 'x' }
  for (const args of [['list'], ['show', id]]) {
    const { stdout } = await infer(['execution', ...args], { env })
    expect(stdout).toContain('Gone. infer ls lists those that are here.')
    expect(stdout).not.toContain('GET /')
  }
})

test.each([
  ['its name and its id', { workflow_name: 'Story' }, 'workflow   Story, wf_1, version 2\n'],
  ['its id if an older server says no name', {}, 'workflow   wf_1, version 2\n'],
])('an execution shows the workflow by %s', async (_, named, shown) => {
  const id = 'exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA'
  const workflow = { workflow_id: 'wf_1', workflow_version: 2, ...named }
  const execution = { id, status: 'completed', created_at: 1, nodes: [], ...workflow }
  const { url } = await fakeServer((_, response) => answer(response, 200, { execution }))
  const { exitCode, stdout, stderr } = await infer(['execution', 'show', id], {
    env: { INFER_URL: url, INFER_TOKEN: 'x' },
  })
  expect([exitCode, stderr]).toEqual([0, ''])
  expect(stdout).toContain(shown)
})

test('two executions are compared node by node', async () => {
  const ids = ['exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA', 'exec_01K2ZZZZZZ7QK2M9XDBBBBBBBB']
  const node = { status: 'completed', model_id: 'x', duration_ms: 1200, cost: 0.5 }
  const { url } = await fakeServer(({ path }, response) => {
    const asked = `/api/workflow-executions/${ids[0]}/compare?with=${ids[1]}`
    if (path !== asked) return answer(response, 404, { error: { code: 'not_found', message: path } })
    const nodes = [
      { node_id: 'write', first: node, second: node, different: [], unknown: ['result'] },
      {
        node_id: 'paint',
        first: { ...node, duration_ms: 900 },
        second: { ...node, duration_ms: 300, cost: null },
        different: ['result'],
        unknown: [],
      },
      { node_id: 'gone', first: node, second: null, different: [], unknown: [] },
    ]
    answer(response, 200, { executions: ids, nodes })
  })
  const env = { INFER_URL: url, INFER_TOKEN: 'x' }
  const { exitCode, stdout, stderr } = await infer(['execution', 'compare', ...ids], { env })
  expect([exitCode, stderr]).toEqual([0, '2 of 3 nodes differ.\n'])
  expect(stdout).toMatch(/write +completed +completed +1\.2 s \/ 1\.2 s +0\.50 \/ 0\.50 += \(result not compared\)/)
  expect(stdout).toMatch(/paint +completed +completed +0\.9 s \/ 0\.3 s +0\.50 \/ - +result/)
  expect(stdout).toMatch(/gone +completed +- .*only in the first/)
})
