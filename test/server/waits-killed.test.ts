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
  result: object | null
}

test('nodes that wait when the server is killed wait on: for their answer, their time and their timeout', {
  timeout: 120_000,
}, async () => {
  const configPath = join(dataDir, 'infer.yaml')
  writeFileSync(configPath, 'limits: { min_free_disk: 0, ballast: 0 }\n')
  const address = `127.0.0.1:${await freePort()}`
  const flags = ['--data-dir', dataDir, '--config', configPath, '--listen', address]
  const start = async () => {
    child = spawn(process.execPath, [resolve('dist/main.cjs'), 'serve', ...flags], { stdio: 'ignore' })
    const ready = () => fetch(`http://${address}/readyz`).then(({ status }) => status, String)
    await expect.poll(ready, { timeout: 40_000 }).toBe(200)
  }
  const call = async <Answer>(path: string, body?: object): Promise<Answer> => {
    const secret = readFileSync(join(dataDir, 'root-token'), 'utf8').trim()
    const response = await fetch(`http://${address}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return (await response.json()) as Answer
  }
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
