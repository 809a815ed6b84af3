import { expect, test } from 'vitest'
import { infer } from '../_infer.ts'
import { answer, fakeServer } from '../_server.ts'

/** Answers of a server of another version: what this version reads in them is missing. */
const answers: Record<string, object> = {
  '/api/organizations': { organizations: [{ id: 'org_1' }], has_more: false, next_cursor: null },
  '/api/jobs': { jobs: [{ id: 'job_1' }], has_more: false, next_cursor: null },
  '/api/workflow-executions': { executions: [{}], has_more: false, next_cursor: null },
  '/api/workflows': { workflows: [{}], has_more: false, next_cursor: null },
  '/std/v1/batches': { data: [{}] },
  '/std/v1/files': { data: [{}] },
}

test.each([
  ['job list'],
  ['execution list'],
  ['workflow list'],
  ['batch list'],
  ['file list'],
  ['usage'],
  ['model list'],
  ['token list'],
  ['webhook list'],
])('infer %s names a server of another version, not a bug of this one', async command => {
  const { url } = await fakeServer(({ path }, response) => answer(response, 200, answers[path.split('?')[0]!] ?? {}))
  const ended = await infer(command.split(' '), { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
  expect([command, ended.exitCode, ended.stdout]).toEqual([command, 1, ''])
  expect(ended.stderr).toContain('This version of infer cannot read the response of ')
  expect(ended.stderr).not.toContain('bug')
})

test('the place where the response did not fit is shown, for a report', async () => {
  const { url } = await fakeServer((_, response) =>
    answer(response, 200, { jobs: [{ id: 'job_1' }], has_more: false, next_cursor: null }),
  )
  const ended = await infer(['job', 'list'], { env: { INFER_URL: url, INFER_TOKEN: 'sk-x' } })
  expect(ended.stderr).toMatch(/Is it an infer server of another version\?\n(Type|Range)Error: .*\n {4}at /)
})
