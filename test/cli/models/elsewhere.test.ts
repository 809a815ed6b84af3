import { expect, test } from 'vitest'
import { runInProcess } from '../_in-process.ts'
import { answer, fakeServer } from '../_server.ts'

test('a lost connection does not end the download of a server elsewhere', async () => {
  const lines = { added: ['  - id: far'], removed: [] }
  const proposal = { model: { id: 'far', engine: 'gguf' }, memory: 5, obstacle: null, advice: [], lines }
  const download = { id: 'download_1', status: 'running', model_id: null, error: null, file: null, bytes: 0 }
  let looks = 0
  const { url } = await fakeServer(({ method, body }, response, { socket }) => {
    if (method === 'POST' && (body as { dry_run?: boolean }).dry_run) return answer(response, 200, proposal)
    if (method === 'POST') return answer(response, 202, download)
    if (++looks === 1) return void socket.destroy()
    answer(response, 200, { downloads: [{ ...download, status: 'completed', model_id: 'far' }] })
  })
  const env = { INFER_URL: url, INFER_TOKEN: 'sk-x' }
  const { exitCode, stdout } = await runInProcess(['pull', 'hf:o/far', '--json'], env)
  expect([exitCode, JSON.parse(stdout.toString())]).toMatchObject([0, { model: { id: 'far' }, server: url }])
})
