import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'

const programs = mkdtempSync(join(tmpdir(), 'infer-ahead-'))
const path = process.env.PATH
let app: TestApp
beforeAll(async () => {
  const card = cardLine({ 'memory.total': 49_152, 'memory.used': 0 })
  installNvidiaSmi(programs, { cards: `echo '${card}'` })
  process.env.PATH = `${programs}:${path}`
  const settings = { devices: 1, memory: '16GiB', concurrency: 1 }
  app = await startApp({ models: ['first', 'second'].map(name => fakeModel(name, [], settings)) })
})
afterAll(async () => {
  process.env.PATH = path
  await app?.[Symbol.asyncDispose]()
  rmSync(programs, { recursive: true })
})

const node = (model_id: string, content: string) => ({
  task: 'std/chat-completion',
  model_id,
  inputs: { messages: [{ role: 'user', content }] },
})
const dag = {
  nodes: {
    one: node('first', 'mode:slow,ms=60000'),
    two: node('second', `\${nodes.one.result.choices[0].message.content}`),
  },
  edges: [],
}
const read = async <Answer>(route: string) => (await (await app.fetch(route)).json()) as Answer
const engines = async () =>
  (await read<{ engines: { model_id: string; state: string; upcoming: string | null }[] }>('/api/system/status'))
    .engines

test('while the first node runs, the model of the second is loaded ahead; without the run nothing keeps it', async () => {
  const begun = await app.fetch('/api/workflows/run', { body: { name: 'Two', dag } })
  const { execution } = (await begun.json()) as { execution: { id: string } }
  await expect.poll(engines).toContainEqual(
    expect.objectContaining({
      model_id: 'second',
      state: 'ready',
      upcoming: 'Loaded ahead for 1 run that needs it next.',
    }),
  )
  expect(await read('/api/plan?model=second')).toMatchObject({
    upcoming: 'Loaded ahead for 1 run that needs it next.',
  })
  await app.fetch(`/api/workflow-executions/${execution.id}/cancel`, { method: 'POST' })
  await expect.poll(engines).toContainEqual(expect.objectContaining({ model_id: 'second', upcoming: null }))
})
