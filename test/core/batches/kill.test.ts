import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startEngine } from '../../_engine.ts'
import { killsOf } from '../../_full.ts'
import { openBench } from '../../bench/server.ts'

const kills = killsOf(2, 20)
const lines = 150 * (kills + 1)

interface Batch {
  id: string
  status: string
  request_counts: { total: number; completed: number; failed: number }
  output_file_id: string
}

test('after kill -9 a batch continues, and each line is in the output exactly once', {
  timeout: 30_000 + kills * 20_000,
}, async () => {
  await using engine = await startEngine()
  const bench = openBench()
  try {
    const model = {
      id: 'fake',
      engine: 'remote',
      url: `${engine.url}/v1`,
      concurrency: 2,
      tasks: ['std/chat-completion'],
    }
    const config = { models: [model], limits: { min_free_disk: 0, ballast: 0 } }
    let server = await bench.serve(config)
    const send = (path: string, init: RequestInit = {}) =>
      fetch(`http://127.0.0.1:${server.port}${path}`, {
        ...init,
        headers: { authorization: `Bearer ${server.rootToken}`, ...(init.headers as object) },
      })
    const line = (at: number) =>
      JSON.stringify({
        custom_id: `${at}`,
        method: 'POST',
        url: '/v1/chat/completions',
        body: { model: 'fake', messages: [{ role: 'user', content: 'Hello' }] },
      })
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new Blob([Array.from({ length: lines }, (_, at) => line(at)).join('\n')]), 'in.jsonl')
    const { id: input_file_id } = (await (await send('/v1/files', { method: 'POST', body: form })).json()) as {
      id: string
    }
    const wanted = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '1h' }
    const headers = { 'content-type': 'application/json' }
    const created = await send('/v1/batches', { method: 'POST', body: JSON.stringify(wanted), headers })
    let batch = (await created.json()) as Batch
    for (let killed = 0; batch.status !== 'completed'; await delay(10)) {
      batch = (await (await send(`/v1/batches/${batch.id}`)).json()) as Batch
      expect(batch.status).not.toBe('failed')
      if (killed === kills || batch.request_counts.completed <= (lines * killed) / (kills + 1)) continue
      killed++
      const exited = bench.exit(server.pid)
      process.kill(server.pid, 'SIGKILL')
      await exited
      server = await bench.serve(config)
    }
    expect(batch.request_counts).toEqual({ total: lines, completed: lines, failed: 0 })
    const output = await (await send(`/v1/files/${batch.output_file_id}/content`)).text()
    const ids = output
      .trimEnd()
      .split('\n')
      .map(one => Number((JSON.parse(one) as { custom_id: string }).custom_id))
    expect(ids.toSorted((a, b) => a - b)).toEqual(Array.from({ length: lines }, (_, at) => at))
  } finally {
    bench.close()
  }
})
