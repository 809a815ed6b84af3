import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'

const names = ['write', 'check', 'sum-up']
const programs = mkdtempSync(join(tmpdir(), 'infer-runs-'))
const path = process.env.PATH
let app: TestApp
beforeAll(async () => {
  const card = cardLine({ 'memory.total': 24_576, 'memory.used': 0 })
  installNvidiaSmi(programs, { cards: `echo '${card}'` })
  process.env.PATH = `${programs}:${path}`
  const settings = { devices: 1, memory: '16GiB', concurrency: 1 }
  app = await startApp({ models: names.map(name => fakeModel(name, ['--ready-after', '500'], settings)) })
})
afterAll(async () => {
  process.env.PATH = path
  await app?.[Symbol.asyncDispose]()
  rmSync(programs, { recursive: true })
})

/** A node for each model, each with the answer of the one before. */
const dag = {
  nodes: Object.fromEntries(
    names.map((model, at) => {
      const before = at === 0 ? 'Begin.' : `\${nodes.${names[at - 1]}.result.choices[0].message.content}`
      const messages = [
        { role: 'system', content: before },
        { role: 'user', content: 'mode:slow,ms=60' },
      ]
      return [model, { task: 'std/chat-completion', model_id: model, inputs: { messages } }]
    }),
  ),
  edges: [],
}

test('runs whose models do not fit together are served model by model: each is loaded once', async () => {
  interface Answer {
    execution: { id: string; status: string }
  }
  const read = async (answer: Promise<Response>) => ((await (await answer).json()) as Answer).execution
  const begun = await Promise.all(
    Array.from({ length: 12 }, (_, at) => read(app.fetch('/api/workflows/run', { body: { name: `Run ${at}`, dag } }))),
  )
  const soon = { timeout: 60_000, interval: 100 }
  for (const { id } of begun)
    await expect
      .poll(async () => (await read(app.fetch(`/api/workflow-executions/${id}`))).status, soon)
      .toBe('completed')
  const status = await app.fetch('/api/system/status')
  const { models } = (await status.json()) as { models: { model_id: string; engine_starts: number }[] }
  const starts = Object.fromEntries(models.map(({ model_id: id, engine_starts: count }) => [id, count]))
  expect(starts).toEqual({ write: 1, check: 1, 'sum-up': 1 })
})
