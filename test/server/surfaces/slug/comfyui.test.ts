import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startApp, type TestApp, workspacesIn } from '../../../_app.ts'
import { type FakeComfyui, type Run, startComfyui } from '../../../_comfyui.ts'
import session from '../../../fixtures/comfyui-session.json' with { type: 'json' }
import { ask, submitted, until } from './_painter.ts'

/** Nodes as the real server's; the values are those of the export. */
const graph = {
  1: { class_type: 'EmptyImage', inputs: { width: 512, height: 512, batch_size: 1, color: 128 } },
  3: { class_type: 'InferTestSampler', inputs: { image: ['1', 0], text: '', seed: 0, steps: 2, seconds: 0 } },
  9: { class_type: 'SaveImage', inputs: { images: ['3', 0], filename_prefix: 'ComfyUI' } },
}
const folder = mkdtempSync(join(tmpdir(), 'infer-comfyui-'))
const source = join(folder, 'workflow.json')
const editSource = join(folder, 'edit.json')

let app: TestApp
let comfyui: FakeComfyui
/** Resolves a prompt that waits in the middle. */
let proceed = () => {}

const finish = (run: Run, entry?: { outputs: object }) => {
  run.end(entry)
  run.send('executing', { node: null })
}

const errorOf = (name: 'error' | 'memory') => Object.values(session[name].history)[0] as { status: object }

beforeAll(async () => {
  writeFileSync(source, JSON.stringify(graph))
  const edit = { ...graph, 10: { class_type: 'LoadImage', inputs: { image: 'example.png' } } }
  writeFileSync(editSource, JSON.stringify(edit))
  comfyui = await startComfyui({
    cached(run) {
      run.send('execution_cached', { nodes: ['1', '3', '9'] })
      finish(run)
    },
    error(run) {
      run.end({ outputs: {}, status: errorOf('error').status })
      run.send('execution_error')
    },
    memory(run) {
      run.end({ outputs: {}, status: errorOf('memory').status })
      run.send('execution_error')
    },
    async 'history is late'(run) {
      run.send('execution_success')
      await new Promise(resolve => setTimeout(resolve, 300))
      run.end()
    },
    cut(run) {
      run.cut()
      proceed = () => run.end()
    },
    'huge preview'(run) {
      run.binary(Buffer.alloc(33 << 20, 1))
      proceed = () => finish(run)
    },
    slow(run) {
      run.send('progress', { node: '3', value: 1, max: 2 })
    },
    nothing: run => finish(run, { outputs: { 12: { images: [{ filename: 'a.png', subfolder: '', type: 'temp' }] } } }),
  })
  const model = (id: string, more: object) => ({
    id,
    engine: 'remote',
    url: comfyui.url,
    source,
    slug: `comfy/${id}`,
    tasks: ['slug/text-to-image'],
    comfyui: { inputs: { prompt: '3.inputs.text', seed: '3.inputs.seed', num_inference_steps: '3.inputs.steps' } },
    ...more,
  })
  app = await startApp({
    models: [
      model('paint', {}),
      model('edit', {
        source: editSource,
        tasks: ['slug/image-to-image'],
        comfyui: { inputs: { image: '10.inputs.image' }, outputs: ['9'] },
      }),
    ],
  })
})
afterAll(async () => {
  await app?.[Symbol.asyncDispose]()
  await comfyui[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const paint = (prompt: string, more: object = {}) =>
  submitted(app, 'comfy/paint', { prompt, image_size: undefined, seed: 7, ...more })
const result = async (id: string) => (await ask(app, `/slug/requests/${id}`)).body

test('a graph is filled, run and fetched', async () => {
  const id = await paint('a cat', { num_inference_steps: 4, output_format: 'jpeg' })
  await until(app, id, 'COMPLETED')
  expect(await result(id)).toMatchObject({
    images: [{ width: 32, height: 16, content_type: 'image/jpeg' }],
    seed: 7,
  })
  const filled = comfyui.seen.prompts.at(-1)!
  expect(filled['3']!.inputs).toMatchObject({ text: 'a cat', seed: 7, steps: 4 })
  expect(filled['9']!.inputs.filename_prefix).toMatch(new RegExp(`^job_.*/ComfyUI$`))
  expect(comfyui.history.size).toBe(0)
  expect(workspacesIn(app.dataDir)).toEqual([])
})

test('parameters that the request does not set keep the values of the graph', async () => {
  await until(app, await paint('a dog'), 'COMPLETED')
  expect(comfyui.seen.prompts.at(-1)!['3']!.inputs).toMatchObject({ steps: 2 })
})

test.each([
  [{ guidance_scale: 7 }, 'guidance_scale'],
  [{ image_size: 'square' }, 'image_size'],
  [{ num_images: 2 }, 'num_images'],
  [{ negative_prompt: 'blue' }, 'negative_prompt'],
])('%o is refused by name', async (body, param) => {
  const answer = await ask(app, '/slug/comfy/paint', { body: { prompt: 'a cat', ...body } })
  expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(`'${param}' has no effect on this model`)])
})

test('previews are passed on, as many as were asked for', async () => {
  const answer = await app.fetch('/std/v1/images/generations', {
    body: { model: 'paint', prompt: 'ok', stream: true, partial_images: 1 },
  })
  const text = await answer.text()
  expect(text.match(/event: image_generation.partial_image/g)).toHaveLength(1)
})

test.each(['cached', 'history is late'])('%s: completes', async prompt => {
  await until(app, await paint(prompt), 'COMPLETED')
})

test.each(['cut', 'huge preview'])('%s: the history is polled when the WebSocket breaks', async prompt => {
  const before = comfyui.seen.calls.length
  const id = await paint(prompt)
  await vi.waitFor(() => expect(comfyui.seen.calls.slice(before)).toContain('GET /queue'), { timeout: 40_000 })
  proceed()
  await until(app, id, 'COMPLETED')
  comfyui.acceptSockets()
})

test.each([
  ['error', "The graph of 'paint' failed in node '3' (InferTestSampler)"],
  ['memory', "The engine of 'paint' ran out of memory in node '3' (InferTestSampler)"],
  ['missing_node', "The graph uses the node 'NodeOfNobody', which this ComfyUI does not have."],
  ['missing_model', "The graph uses the file 'sd_xl_base_1.0.safetensors' in node '4' (CheckpointLoaderSimple)"],
  ['range', "ComfyUI refused 'steps' of node '3' (InferTestSampler): Value 5000 bigger than max of 1000"],
  ['nothing', "The graph of 'paint' saved no image."],
])('%s: the failure says what and where', async (prompt, sentence) => {
  const id = await paint(prompt)
  await until(app, id, 'FAILED')
  expect(JSON.stringify(await result(id))).toContain(sentence)
})

test('a cancelled prompt is interrupted if it runs, and removed if it waits for others', async () => {
  const others = [0, 'of-another', {}, {}, []]
  comfyui.running.push(others)
  for (const prompt of ['slow', 'behind others']) {
    const id = await paint(prompt)
    const before = comfyui.seen.calls.length
    await vi.waitFor(() => expect(comfyui.running.length + comfyui.pending.length).toBe(2), { timeout: 40_000 })
    await ask(app, `/slug/requests/${id}/cancel`, { method: 'PUT' })
    await vi.waitFor(() => expect([...comfyui.running, ...comfyui.pending]).toEqual([others]), { timeout: 40_000 })
    expect(comfyui.seen.calls.slice(before).includes('POST /interrupt')).toBe(prompt === 'slow')
  }
  comfyui.running.splice(0)
})

test('input images are uploaded into a folder of the job', async () => {
  const png = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'blue' } })
    .png()
    .toBuffer()
  const id = await submitted(app, 'comfy/edit', {
    prompt: 'ok',
    image_size: undefined,
    seed: undefined,
    image_url: `data:image/png;base64,${png.toString('base64')}`,
  })
  await until(app, id, 'COMPLETED')
  expect(comfyui.seen.uploads).toEqual([expect.stringMatching(/^job_[^/]+\/image\.png$/)])
  expect(comfyui.seen.prompts.at(-1)!['10']!.inputs.image).toBe(comfyui.seen.uploads[0])
})
