import { expect, test } from 'vitest'
import { infer } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

test('in a pipe too workflows are listed by their names', async () => {
  const execution = { id: 'exec_01K2ZZZZZZ7QK2M9XDAAAAAAAA', status: 'completed', created_at: 1, duration_ms: 1500 }
  const executions = [
    { ...execution, workflow_id: 'wf_1' },
    { ...execution, workflow_id: null },
  ]
  const workflows = [{ id: 'wf_1', name: 'Story', version: 1, created_at: 1, updated_at: 1 }]
  const { url } = await fakeServer(({ path }, response) =>
    answer(response, 200, path.startsWith('/api/workflows?') ? { workflows } : { executions, has_more: false }),
  )
  const { exitCode, stdout } = await infer(['execution', 'list'], { env: { INFER_URL: url, INFER_TOKEN: 'x' } })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(/ completed +Story /)
  expect(stdout).toMatch(/ completed +a file /)
  expect(stdout).not.toContain('wf_1')
})
