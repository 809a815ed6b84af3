import { expect, test } from 'vitest'
import { openApp } from '../../../../cli/server/app.ts'
import { openLog } from '../../../../core/log.ts'
import { startApp } from '../../../_app.ts'
import { ask, type Json, painters } from '../slug/_painter.ts'

test('after a server stop the same request under its key gets the images of the same job', async () => {
  await using first = await startApp({ models: painters })
  const path = '/std/v1/images/generations'
  const body = { model: 'painter', prompt: 'mode:slow,ms=3000,steps=20', size: '64x64', seed: 2 }
  const headers = { 'idempotency-key': 'once' }
  const asked = ask(first, path, { body, headers })
  await expect
    .poll(async () => ((await ask(first, '/api/jobs?model_id=painter&status=processing')).body.jobs as Json[]).length)
    .toBe(1)
  await first.app.close()
  const told = await asked
  expect([told.status, told.body.error.code]).toEqual([503, 'shutting_down'])

  const { dataDir, configPath, secret } = first
  const log = openLog('error', () => {})
  const app = await openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  try {
    const response = await fetch(app.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    const made = (await response.json()) as Json
    expect([response.status, made.error]).toEqual([200, undefined])
    expect(response.headers.get('x-job-id')).toBe(told.headers.get('x-job-id'))
    expect(response.headers.get('idempotent-replayed')).toBe('true')
    expect(made).toMatchObject({ seed_used: 2, size: '64x64' })
    expect((await fetch(made.data[0].url as string)).status).toBe(200)
  } finally {
    await app.close()
  }
})
