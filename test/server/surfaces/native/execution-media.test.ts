import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { hasFfmpeg } from '../../../_ffmpeg.ts'

let app: TestApp
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-video']
  const drawn = { id: 'drawn', engine: 'demo', tasks, args: ['--step-ms', '0'] }
  app = await startApp({ models: [drawn, fakeModel('fake')] })
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

async function run(nodes: object, more: object = {}): Promise<{ id: string; status: string; nodes: Node[] }> {
  const begun = await app.fetch('/api/workflows/run', { body: { dag: { nodes, edges: [] }, ...more } })
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
] as const)('an image becomes a video: %s', async ([, reference], { skip }) => {
  skip(!hasFfmpeg)
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

test('an image is generated once, and again when its file was deleted', async () => {
  const first = await run({ paint: paint(12) })
  const second = await run({ paint: paint(12) })
  expect(second.nodes[0]).toMatchObject({ cached: true, job_id: first.nodes[0]!.job_id })
  // Its files are kept as long as something uses them.
  expect((await app.fetch(`/api/workflow-executions/${first.id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await fetch(second.nodes[0]!.result!.images![0]!.url)).status).toBe(200)
  expect((await app.fetch(`/api/workflow-executions/${second.id}`, { method: 'DELETE' })).status).toBe(200)
  const third = await run({ paint: paint(12) })
  expect(third.nodes[0]).toMatchObject({ status: 'completed', cached: false })
})

test.for([
  ['the object', '${nodes.paint.result.images[0]}'],
  ['the list', '${nodes.paint.result.images}'],
])('a chat reads an image: %s', async ([, url]) => {
  const content = [{ type: 'image_url', image_url: { url } }]
  const look = { model_id: 'fake', task: 'std/chat-completion', inputs: { messages: [{ role: 'user', content }] } }
  const nodes = { paint: paint(11), look }
  const checked = await app.fetch('/api/workflows/validate', { body: { dag: { nodes, edges: [] } } })
  const { diagnostics } = (await checked.json()) as { diagnostics: { type_issues: []; warnings: { code: string }[] } }
  expect([diagnostics.type_issues, diagnostics.warnings.map(({ code }) => code)]).toEqual([
    [],
    ['coerced_media_reference'],
  ])
  expect((await run(nodes)).nodes[1]).toMatchObject({ status: 'completed', error: null })
})

test('work on equal images is done once', async ({ skip }) => {
  skip(!hasFfmpeg)
  const nodes = { paint: { ...paint(14), cache: 'off' }, film: film('${nodes.paint.result.images[0].url}') }
  const first = await run(nodes)
  const second = await run(nodes)
  expect(first.nodes.map(({ cached }) => cached)).toEqual([false, false])
  expect(second.nodes.map(({ cached }) => cached)).toEqual([false, true])
})

describe('a signed address of this server', () => {
  let link: string
  beforeAll(async () => {
    const { nodes } = await run({ paint: paint(13) })
    link = nodes[0]!.result!.images![0]!.url
    expect(link.startsWith(`${app.url}/files/`)).toBe(true)
  })
  const look = (url: string) => ({
    model_id: 'fake',
    task: 'std/chat-completion',
    inputs: { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] },
  })

  test.for<[string, (url: string) => object, boolean]>([
    ['as a parameter', film, true],
    ['in the inputs of a node', film, false],
    ['as a parameter, for a model that looks at it', look, true],
    ['in the inputs of a node that looks at it', look, false],
  ])('is a file of ours: %s', async ([, node, asParameter], { skip }) => {
    skip(node === film && !hasFfmpeg)
    const done = await (asParameter
      ? run({ a: node('${input.picture}') }, { input_params: { picture: link } })
      : run({ a: node(link) }))
    expect(done.nodes[0]).toMatchObject({ status: 'completed', error: null })
    const answer = await app.fetch(`/api/workflow-executions/${done.id}/retry`, { body: { from: 'start' } })
    const again = ((await answer.json()) as { execution: { id: string } }).execution
    const ended = await app.fetch(`/api/workflow-executions/${again.id}?wait=100`)
    expect(((await ended.json()) as { execution: { status: string } }).execution.status).toBe('completed')
  })

  test('is refused with another signature', async () => {
    const done = await run({ a: film(link.replace(/sig=../, 'sig=AA')) })
    expect(done.nodes[0]).toMatchObject({ status: 'failed', error: { code: 'url_fetch_failed' } })
  })
})
