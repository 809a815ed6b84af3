import { expect, test } from 'vitest'
import { openKillable } from './_killable.ts'

interface Node {
  node_id: string
  status: string
  result: object | null
}

test('nodes that wait when the server is killed wait on: for their answer, their time and their timeout', {
  timeout: 120_000,
}, async () => {
  await using server = await openKillable()
  const { start, kill, call } = server
  await start()
  const nodes = {
    asked: { task: 'wait/approval', inputs: { title: 'Go on?' } },
    unanswered: { task: 'wait/approval', inputs: { title: 'Go on?', timeout: 2, default: { approved: false } } },
    late: { task: 'wait/until', inputs: { seconds: 2 } },
  }
  const { execution } = await call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes } })
  const read = async (query = '') =>
    (
      await call<{ execution: { status: string; progress: { waiting: number }; nodes: Node[] } }>(
        `/api/workflow-executions/${execution.id}${query}`,
      )
    ).execution
  await expect.poll(async () => (await read()).progress.waiting, { timeout: 30_000, interval: 20 }).toBe(3)
  const [approval] = (await call<{ approvals: { node_id: string; url: string }[] }>('/api/approvals')).approvals.filter(
    ({ node_id }) => node_id === 'asked',
  )
  await kill()
  await start()
  const answered = await fetch(approval!.url, { method: 'POST', body: new URLSearchParams({ decision: 'approve' }) })
  expect(answered.status).toBe(200)
  const ended = await read('?wait=60')
  expect([ended.status, ended.progress.waiting]).toEqual(['completed', 0])
  const results = Object.fromEntries(ended.nodes.map(({ node_id, result }) => [node_id, result]))
  expect(results.asked).toMatchObject({ approved: true, by: { type: 'link' } })
  expect(results.unanswered).toMatchObject({ approved: false, by: { type: 'timeout' } })
  expect(results.late).toEqual({ at: expect.any(Number) })
})
