import { expect, test } from 'vitest'
import { openKillable } from './_killable.ts'

interface Node {
  node_id: string
  status: string
  result: object | null
  items: object | null
}

test('nodes that wait when the server is killed wait on: for their answer, their time and their timeout', {
  timeout: 120_000,
}, async () => {
  await using server = await openKillable()
  const { start, kill, call } = server
  await start()
  const nodes = {
    asked: { task: 'wait/approval', inputs: { title: 'Go on?' } },
    unanswered: { task: 'wait/approval', inputs: { title: 'Go on?', timeout: 4, default: { approved: false } } },
    each: { task: 'wait/approval', for_each: ['a', 'b'], inputs: { title: '${item}?' } },
    late: { task: 'wait/until', inputs: { seconds: 4 } },
  }
  const { execution } = await call<{ execution: { id: string } }>('/api/workflows/run', { dag: { nodes } })
  const read = async (query = '') =>
    (
      await call<{ execution: { status: string; progress: { waiting: number }; nodes: Node[] } }>(
        `/api/workflow-executions/${execution.id}${query}`,
      )
    ).execution
  await expect.poll(async () => (await read()).progress.waiting, { interval: 20 }).toBe(4)
  const open = async () =>
    (await call<{ approvals: { node_id: string; item: number | null; url: string }[] }>('/api/approvals')).approvals
  const ofItems = async () => (await open()).filter(({ node_id }) => node_id === 'each')
  await expect.poll(async () => (await ofItems()).length, { interval: 20 }).toBe(2)
  const approval = (await open()).find(({ node_id }) => node_id === 'asked')
  const before = await ofItems()
  await kill()
  await start()
  expect(await ofItems()).toEqual(before)
  for (const { item } of before) {
    const path = `/api/workflow-executions/${execution.id}/nodes/each/resolve`
    expect(await call(path, { item, approved: item === 1 })).toMatchObject({ resolved: true, item })
  }
  const answered = await fetch(approval!.url, { method: 'POST', body: new URLSearchParams({ decision: 'approve' }) })
  expect(answered.status).toBe(200)
  const ended = await read('?wait=60')
  expect([ended.status, ended.progress.waiting]).toEqual(['completed', 0])
  const { items } = ended.nodes.find(({ node_id }) => node_id === 'each')!
  expect(items).toEqual({ total: 2, completed: 2, failed: 0, running: 0, waiting: 0 })
  const results = Object.fromEntries(ended.nodes.map(({ node_id, result }) => [node_id, result]))
  expect(results.asked).toMatchObject({ approved: true, by: { type: 'link' } })
  expect(results.unanswered).toMatchObject({ approved: false, by: { type: 'timeout' } })
  expect(results.each).toMatchObject([{ approved: false }, { approved: true }])
  expect(results.late).toEqual({ at: expect.any(Number) })
})
