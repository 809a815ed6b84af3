import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'

let app: TestApp
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-video']
  app = await startApp({ models: [{ id: 'drawn', engine: 'demo', tasks, args: ['--step-ms', '0'] }] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Picture {
  url: string
}
interface Node {
  node_id: string
  status: string
  cached: boolean
  job_id: string
  result: { images?: Picture[]; video?: Picture } | null
  error: object | null
}

async function run(nodes: object): Promise<{ id: string; status: string; nodes: Node[] }> {
  const begun = await app.fetch('/api/workflows/run', { body: { dag: { nodes, edges: [] } } })
  const body = (await begun.json()) as { execution: { id: string } }
  expect([begun.status, body]).toEqual([202, expect.anything()])
  const ended = await app.fetch(`/api/workflow-executions/${body.execution.id}?wait=100`)
  return ((await ended.json()) as { execution: { id: string; status: string; nodes: Node[] } }).execution
}
const paint = (seed: number) => ({
  model_id: 'drawn',
  task: 'slug/text-to-image',
  inputs: { prompt: 'a cat', width: 64, height: 64, seed },
})
const film = (image_url: string) => ({
  model_id: 'drawn',
  task: 'slug/image-to-video',
  inputs: { prompt: 'it moves', image_url, width: 64, height: 64, num_frames: 9, seed: 1 },
})

test.for([
  ['by its address', '${nodes.paint.result.images[0].url}'],
  ['as the object that has it', '${nodes.paint.result.images[0]}'],
  ['as the list of them', '${nodes.paint.result.images}'],
] as const)('a picture becomes a video: %s', { timeout: 120_000 }, async ([, reference]) => {
  const done = await run({ paint: paint(11), film: film(reference) })
  expect([done.status, done.nodes.map(({ status, error }) => [status, error])]).toEqual([
    'completed',
    [
      ['completed', null],
      ['completed', null],
    ],
  ])
  const video = done.nodes[1]!.result!.video!
  const response = await fetch(video.url)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
  expect((await response.arrayBuffer()).byteLength).toBeGreaterThan(500)
})

test('a picture is drawn once, and again when its file was deleted', { timeout: 120_000 }, async () => {
  const first = await run({ paint: paint(12) })
  const second = await run({ paint: paint(12) })
  expect(second.nodes[0]).toMatchObject({ cached: true, job_id: first.nodes[0]!.job_id })
  // Its files live as long as somebody uses them.
  expect((await app.fetch(`/api/workflow-executions/${first.id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await fetch(second.nodes[0]!.result!.images![0]!.url)).status).toBe(200)
  expect((await app.fetch(`/api/workflow-executions/${second.id}`, { method: 'DELETE' })).status).toBe(200)
  const third = await run({ paint: paint(12) })
  expect(third.nodes[0]).toMatchObject({ status: 'completed', cached: false })
})
