import { expect, test } from 'vitest'
import { openApp } from '../../../../cli/server/app.ts'
import { openLog } from '../../../../core/log.ts'
import { startApp } from '../../../_app.ts'
import { ask, type Json, painters, statusOf, submitted, until } from './_painter.ts'

test('a server that stops during requests: running and waiting ones continue after the restart', async () => {
  await using first = await startApp({ models: painters })
  const done = await submitted(first, 'fake/paint/text-to-image', { seed: 1 })
  await until(first, done, 'COMPLETED')
  const running = await submitted(first, 'fake/solo', { prompt: 'mode:slow,ms=6000,steps=20', seed: 2 })
  await until(first, running, 'IN_PROGRESS')
  const waiting = await submitted(first, 'fake/solo', { seed: 3 })
  const sync = ask(first, '/slug/fake/paint/text-to-image', {
    body: { prompt: 'mode:slow,ms=60000', image_size: { width: 64, height: 64 }, sync_mode: true },
  })
  await expect
    .poll(async () => ((await ask(first, '/api/jobs?model_id=painter&status=processing')).body.jobs as Json[]).length)
    .toBe(1)
  await first.app.close()
  const told = await sync
  expect([told.status, told.body.error.code]).toEqual([503, 'shutting_down'])

  const { dataDir, configPath, secret } = first
  const log = openLog('error', () => {})
  const app = await openApp({ dataDir, configPath, listen: '127.0.0.1:0', drainTimeoutMs: 2_000, log })
  try {
    const second = {
      ...first,
      url: app.url,
      fetch: (path: string) => fetch(app.url + path, { headers: { authorization: `Bearer ${secret}` } }),
    }
    const before = (await ask(second, `/slug/requests/${done}`)).body
    expect([before.status, before.seed_used]).toEqual(['completed', 1])
    // The addresses have the host of the request, and they work.
    expect(before.images[0].url).toContain(app.url)
    expect((await fetch(before.images[0].url as string)).status).toBe(200)
    expect(['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED']).toContain((await statusOf(second, running)).status)
    expect((await until(second, running, 'COMPLETED')).result.seed_used).toBe(2)
    expect((await until(second, waiting, 'COMPLETED')).result.seed_used).toBe(3)
    const job = (await ask(second, `/api/jobs/${running.replace('q_', 'job_')}`)).body
    // Released in an orderly way: a stop charges no attempt.
    expect(job).toMatchObject({ attempts: 1, status: 'completed' })
  } finally {
    await app.close()
  }
})
