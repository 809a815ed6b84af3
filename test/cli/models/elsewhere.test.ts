import { expect, test } from 'vitest'
import { runInProcess } from '../_in-process.ts'
import { answer, fakeServer } from '../_server.ts'

test('a lost connection does not end the download of a server elsewhere', async () => {
  const lines = { added: ['  - id: far'], removed: [] }
  const proposal = { model: { id: 'far', engine: 'gguf' }, memory: 5, obstacle: null, fits: true, advice: [], lines }
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

const missing = "The engine 'vllm' is not installed there. Install it: infer engine setup vllm"
test.each([
  ['what is missing there', true, ['model', 'add', 'hf:o/far', '--yes'], 0, { force: true }],
  ['what is missing there, unasked', true, ['pull', 'hf:o/far'], 1, 'Add it anyway with --yes.'],
  ['too little memory', false, ['model', 'add', 'hf:o/far', '--yes'], 1, 'Add it anyway with --force.'],
  ['too little memory, forced', false, ['pull', 'hf:o/far', '--force'], 0, { force: true }],
])('a model with an obstacle on a server elsewhere: %s', async (_, fits, args, code, expected) => {
  const proposal = { model: { id: 'far' }, memory: 5, obstacle: missing, fits, advice: [], lines: { added: [] } }
  const sent: unknown[] = []
  const { url } = await fakeServer(({ body }, response) => {
    if ((body as { dry_run?: boolean }).dry_run) return answer(response, 200, proposal)
    sent.push(body)
    answer(response, 202, { id: 'download_1', status: 'completed', model_id: 'far', error: null })
  })
  const { exitCode, failure } = await runInProcess(args, { INFER_URL: url, INFER_TOKEN: 'sk-x' })
  if (typeof expected === 'string') expect([sent, failure?.message]).toEqual([[], expect.stringContaining(expected)])
  else expect(sent).toEqual([expect.objectContaining(expected)])
  expect(exitCode).toBe(code)
})
