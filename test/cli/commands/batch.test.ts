import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { infer, temporaryFolder } from '../_infer.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

const run = (args: string[], input = '') =>
  infer(['batch', ...args], { env: { INFER_URL: app.url, INFER_TOKEN: app.secret }, input })
const line = (at: number, body: object = {}) =>
  JSON.stringify({
    custom_id: `line ${at}`,
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'fake', messages: [{ role: 'user', content: 'Hello' }], ...body },
  })

test('submit from a file and wait, then read the answers and the errors in pipes', async () => {
  const path = join(temporaryFolder(), 'in.jsonl')
  writeFileSync(path, `${line(1)}\n${line(2)}\n${line(3, { temperature: 'warm' })}\n`)
  const submitted = await run(['submit', path, '--wait'])
  expect(submitted).toMatchObject({ exitCode: 0 })
  expect(submitted.stdout).toMatch(/^batch_\w{26} is completed: 2 of 3 completed, 1 failed\.\n$/)
  const id = submitted.stdout.slice(0, 32)
  const results = await run(['results', id.slice(-8)])
  const ids = results.stdout
    .trimEnd()
    .split('\n')
    .map(one => (JSON.parse(one) as { custom_id: string }).custom_id)
  expect(ids.toSorted()).toEqual(['line 1', 'line 2'])
  const { stdout } = await run(['results', id, '--errors'])
  expect(JSON.parse(stdout)).toMatchObject({ custom_id: 'line 3', response: { status_code: 400 } })
})

test('submit from standard input as JSON, watch and list', async () => {
  const submitted = await run(['submit', '-', '--json'], line(1))
  const { id, status } = JSON.parse(submitted.stdout) as { id: string; status: string }
  expect(status).toBe('validating')
  const watched = await run(['watch', id])
  expect(watched).toMatchObject({ exitCode: 0, stdout: `${id} is completed: 1 of 1 completed.\n` })
  expect((await run(['list'])).stdout).toContain(id)
  expect(await run(['cancel', id])).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('has already ended') })
})

test('a wrong file ends with the numbers of its lines and exit code 1', async () => {
  const { exitCode, stderr, stdout } = await run(['submit', '-', '--wait'], `${line(1)}\n{}`)
  expect(exitCode).toBe(1)
  expect(stderr).toContain("Line 2: 'custom_id' is missing.")
  expect(stdout).toContain('is failed')
  expect(await run(['show', 'zz'])).toMatchObject({ exitCode: 64 })
})
