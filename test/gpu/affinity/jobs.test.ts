import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('pair', [], { replicas: { min: 2, max: 2 } })] })
})
afterAll(() => app[Symbol.asyncDispose]())

/** Runs a job whose prompt begins with 4 kB of this letter, and returns the engine that did it. */
async function engineOf(letter: string, turn: number): Promise<string> {
  const messages = [
    { role: 'system', content: letter.repeat(4_000) },
    { role: 'user', content: `Turn ${turn}` },
  ]
  const made = await app.fetch('/api/jobs', {
    body: { task: 'std/chat-completion', model_id: 'pair', inputs: { messages } },
  })
  const { id } = (await made.json()) as { id: string }
  const job = (await (await app.fetch(`/api/jobs/${id}?wait=30`)).json()) as { status: string; worker_id: string }
  expect(job.status).toBe('completed')
  return job.worker_id
}

test('a job gets the engine that has computed the beginning of its prompt', async () => {
  const engines = async () =>
    ((await (await app.fetch('/api/system/status')).json()) as { engines: { state: string; busy: number }[] }).engines
  await expect.poll(engines).toMatchObject([{ state: 'ready' }, { state: 'ready' }])
  const used: Record<string, string[]> = { a: [], b: [] }
  for (let turn = 0; turn < 3; turn++) for (const letter of ['a', 'b']) used[letter]!.push(await engineOf(letter, turn))
  const [first, second] = [new Set(used.a), new Set(used.b)]
  expect([first.size, second.size]).toEqual([1, 1])
  expect([...first]).not.toEqual([...second])
  expect(await engines()).toMatchObject([{ busy: 0 }, { busy: 0 }])
})
