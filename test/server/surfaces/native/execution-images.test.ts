import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'

/** Workflows of images with the OpenAI-style fields, on the engine that generates images without a model. */
let app: TestApp
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting']
  app = await startApp({ models: [{ id: 'drawn', engine: 'demo', tasks, args: ['--step-ms', '0'] }] })
})
afterAll(() => app[Symbol.asyncDispose]())

// oxlint-disable-next-line no-explicit-any
type Json = any

async function send(path: string, body?: object): Promise<Json> {
  const response = await app.fetch(path, body === undefined ? {} : { body })
  return response.json()
}
async function run(dag: object): Promise<Json> {
  const { execution } = await send('/api/workflows/run', { dag })
  const done = await send(`/api/workflow-executions/${execution.id}?wait=100`)
  return done.execution
}
const paint = (more: object = {}, fields: object = {}) => ({
  model_id: 'drawn',
  task: 'std/image-generation',
  inputs: { prompt: 'a cat', size: '64x64', seed: 3, n: 2, ...more },
  ...fields,
})
const edit = (image: object, fields: object = {}) => ({
  model_id: 'drawn',
  task: 'std/image-edit',
  inputs: { prompt: 'a dog', seed: 4, ...image },
  ...fields,
})
const validated = async (nodes: object): Promise<Json> =>
  (await send('/api/workflows/validate', { dag: { nodes, edges: [] } })).diagnostics

test.for<[string, object]>([
  ['as OpenAI names it', { image: '${nodes.paint.result.data[1].url}' }],
  ['as the other tasks name it', { image: '${nodes.paint.result.images[0].url}' }],
  ['as the object that has it', { image: '${nodes.paint.result.images[0]}' }],
  ['in the list of pictures', { images: ['${nodes.paint.result.data[0].url}'] }],
  ['in the words of OpenAI', { images: [{ image_url: '${nodes.paint.result.data[0].url}' }] }],
])('what one node paints another one edits: %s', async ([, image]) => {
  const nodes = { paint: paint(), edit: edit(image) }
  const { type_issues, warnings } = await validated(nodes)
  expect([type_issues, warnings.map(({ code }: Json) => code)]).toEqual([[], []])
  const done = await run({ nodes, edges: [] })
  expect([done.status, done.error]).toEqual(['completed', null])
  const [first, second] = done.nodes as Json[]
  expect(first.result).toMatchObject({ created: expect.any(Number), data: [{ seed: 3 }, { seed: 3 }], size: '64x64' })
  expect(second.result.images).toHaveLength(1)
  const picture = await fetch(second.result.data[0].url as string)
  expect([picture.status, picture.headers.get('content-type')]).toEqual([200, 'image/png'])
  const job = await send(`/api/jobs/${second.job_id}`)
  expect(job).toMatchObject({ task: 'std/image-edit', status: 'completed' })
})

test('an object in place of an address is accepted when it contains one', async () => {
  const nodes = { paint: paint(), edit: edit({ images: [{ image_url: '${nodes.paint.result.images[1]}' }] }) }
  const { type_issues, warnings } = await validated(nodes)
  expect([type_issues, warnings.map(({ code }: Json) => code)]).toEqual([[], ['coerced_media_reference']])
  const done = await run({ nodes, edges: [] })
  expect([done.status, done.error]).toEqual(['completed', null])
})

test('the named parts of a result are kept, and every result name of a task leads to them', {
  timeout: 120_000,
}, async () => {
  const dag = {
    nodes: { paint: paint({}, { task: 'std/images-generations', outputs: ['data[1].url'] }) },
    edges: [],
  }
  const { outputs, nodes } = await run(dag)
  expect(nodes[0].task).toBe('std/image-generation')
  expect(outputs.paint.result).toEqual({ data: [null, { url: expect.stringContaining('/files/') }] })
})

test('with a seed the same images are generated once', async () => {
  const nodes = { paint: paint({ seed: 9 }), edit: edit({ image: '${nodes.paint.result.data[0].url}' }) }
  const first = await run({ nodes, edges: [] })
  const second = await run({ nodes, edges: [] })
  expect(first.nodes.map(({ cached }: Json) => cached)).toEqual([false, false])
  expect(second.nodes.map(({ cached }: Json) => cached)).toEqual([true, true])
  const { seed: _, ...loose } = paint().inputs
  const unseeded = { nodes: { paint: { ...paint(), inputs: loose } }, edges: [] }
  await run(unseeded)
  expect((await run(unseeded)).nodes[0].cached).toBe(false)
})

test('a mismatch of types is found before anything runs', async () => {
  const of = async (nodes: object) => {
    const { type_issues } = await validated(nodes)
    return type_issues.map(({ code, path }: Json) => [code, path])
  }
  expect(await of({ edit: edit({}) })).toEqual([['missing_input', 'inputs.image']])
  expect(await of({ paint: paint({ n: 99 }) })).toEqual([['value_out_of_range', 'inputs.n']])
  expect(await of({ paint: paint({ size: 'large' }) })).toEqual([['value_out_of_range', 'inputs.size']])
  expect(await of({ paint: paint(), edit: edit({ image: '${nodes.paint.result.videos[0].url}' }) })).toEqual([
    ['unknown_output_path', 'inputs.image'],
  ])
  expect(await of({ paint: paint(), next: paint({ prompt: '${nodes.paint.result.images}' }) })).toEqual([
    ['type_mismatch', 'inputs.prompt'],
  ])
  expect(await of({ paint: paint({}, { outputs: ['data[0].text'] }) })).toEqual([['unknown_output_path', 'outputs[0]']])
})
