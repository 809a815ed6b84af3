import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { assetPath } from '../../core/assets.ts'
import { Model } from '../../core/models/model.ts'
import { searchBackends } from '../../gpu/engines/gguf/backend-search.ts'
import { probeMachine } from '../../gpu/probe-machine.ts'
import { noWrapper } from '../../gpu/sandbox/wrapper.ts'
import { full } from '../_full.ts'
import { fleetOf, send } from './_fleet.ts'
import type { LeasingFleet } from './_leasing.ts'
import { backends, cacheWithShaders, driver, environment, missing } from './_vulkan.ts'
import { temporary } from './launcher/_launch.ts'

const MiB = 2 ** 20
const source = assetPath('models/tiny-chat.gguf')
/** Lacks what llama.cpp needs, and ends its process for it. */
const crashing = '/usr/lib/chromium/vk_swiftshader_icd.json'

/** A second device: the same driver in another file, which Vulkan loads once more. */
function secondDriver(): string {
  const folder = temporary()
  const { ICD, ...rest } = JSON.parse(readFileSync(driver, 'utf8')) as { ICD: { library_path: string } }
  const library = ICD.library_path.includes('/')
    ? ICD.library_path
    : join('/usr/lib/x86_64-linux-gnu', ICD.library_path)
  copyFileSync(library, join(folder, 'second.so'))
  const path = join(folder, 'second.json')
  writeFileSync(path, JSON.stringify({ ...rest, ICD: { ...ICD, library_path: './second.so' } }))
  return path
}

/** The probability of each candidate for the first token after each prompt. */
async function firstTokens(fleet: LeasingFleet, model: Model, prompts: readonly string[]) {
  using lease = await fleet.lease(model, { waitMs: 600_000 })
  const body = JSON.stringify({ model: model.id, prompt: prompts, max_tokens: 1, temperature: 0, logprobs: 5 })
  const { text, failure } = await send(lease, '', { path: '/v1/completions', body }).answer
  expect(failure).toBeUndefined()
  const { choices } = JSON.parse(text) as {
    choices: { index: number; logprobs: { top_logprobs: Record<string, number>[] } }[]
  }
  return choices
    .toSorted((a, b) => a.index - b.index)
    .map(
      ({ logprobs }) =>
        new Map(Object.entries(logprobs.top_logprobs[0]!).map(([token, log]) => [token, Math.exp(log)])),
    )
}

// The trial compiles the shaders on the processor, which takes 10 to 30 s.
describe.skipIf(missing !== '')(`a Vulkan device ${missing && `(skipped: ${missing})`}`, { timeout: 600_000 }, () => {
  // Its shaders compile for minutes on a slow machine that has none yet.
  test.skipIf(!full)('two of them: models are placed, divided, answer as on the processor, and end', async () => {
    const dataDir = temporary()
    const host = { ...environment(`${driver}:${secondDriver()}`, '0,1'), INFER_CACHE_DIR: cacheWithShaders(dataDir) }
    const of = (id: string, more: object) =>
      Model.parse({ id, engine: 'gguf', source, concurrency: 1, tasks: ['std/completion'], ...more })
    const [first, second] = ['first', 'second'].map(id => of(id, { memory: '1100MiB' })) as [Model, Model]
    const processor = of('processor', { devices: 'cpu' })
    // Larger than one device: its layers are divided, in place of the others.
    const wide = of('wide', { memory: '3GiB' })
    const large = of('large', { memory: '5GiB' })
    const machine = await probeMachine(dataDir, host)
    const { fleet, log } = await fleetOf([first, second, processor, wide, large], {
      dataDir,
      environment: host,
      machine,
    })

    await Promise.all([first, second, processor].map(model => fleet.load(model)))
    const { devices, residents } = fleet.snapshot()
    expect(devices).toMatchObject([
      { id: 'gpu0', kind: 'gpu', name: expect.stringMatching(/^llvmpipe/) as string, bookedBytes: 1100 * MiB },
      { id: 'gpu1', kind: 'gpu', name: expect.stringMatching(/^llvmpipe/) as string, bookedBytes: 1100 * MiB },
      { id: 'cpu' },
    ])
    const places = Object.fromEntries(residents.map(({ modelId, devices }) => [modelId, devices.join()]))
    expect(new Set([places.first, places.second])).toEqual(new Set(['gpu0', 'gpu1']))
    expect(places.processor).toBe('cpu')
    expect(residents.find(({ modelId }) => modelId === 'first')!.command.join(' ')).toContain('--gpu vulkan')

    const prompts = Array.from(
      { length: 50 },
      (_, at) => `${'word '.repeat(at % 7)}${String.fromCharCode(97 + (at % 26))} ${at}`,
    )
    const expected = await firstTokens(fleet, processor, prompts)
    async function answersAsExpected(model: Model) {
      const found = await firstTokens(fleet, model, prompts)
      for (const [at, candidates] of expected.entries())
        for (const [token, probability] of candidates)
          expect(Math.abs((found[at]!.get(token) ?? 0) - probability), `${model.id}: ${prompts[at]}`).toBeLessThan(0.05)
    }
    for (const model of [first, second]) await answersAsExpected(model)

    await fleet.load(wide)
    expect(fleet.snapshot().residents.map(({ modelId, devices }) => [modelId, devices.join()])).toEqual([
      ['processor', 'cpu'],
      ['wide', 'gpu0,gpu1'],
    ])
    await answersAsExpected(wide)
    await expect(fleet.load(large)).rejects.toThrow(
      /'large' needs 5\.0 GiB of memory.*GPUs here have 3\.\d GiB together/,
    )
    await fleet.unload('wide')
    expect(fleet.snapshot().residents.map(({ modelId }) => modelId)).toEqual(['processor'])
    expect(fleet.snapshot().devices).toMatchObject([{ bookedBytes: 0 }, { bookedBytes: 0 }, { id: 'cpu' }])

    // Both devices are given to other programs while one answers, and are used again.
    const lease = await fleet.lease(first, { waitMs: 600_000 })
    const body = JSON.stringify({ model: 'first', prompt: 'Hello', max_tokens: 16 })
    const { answer } = send(lease, '', { path: '/v1/completions', body })
    const none = { devices: null, until: null, process: null, schedule: null }
    await fleet.pauses.add(none, { atOnce: false })
    const waiting = firstTokens(fleet, first, prompts.slice(0, 1))
    expect((await answer).failure).toBeUndefined()
    const lastToken = performance.now()
    lease.release()
    await fleet.pauses.released()
    const freedMs = performance.now() - lastToken
    expect(freedMs).toBeLessThan(5_000)
    expect(fleet.snapshot().residents.map(({ modelId }) => modelId)).toEqual(['processor'])
    expect(fleet.activity('first')).toMatchObject({ paused: true })
    await fleet.pauses.resume(null)
    expect([...(await waiting)[0]!.keys()]).toEqual([...expected[0]!.keys()])
    expect(log.lines.filter(line => line.includes('does not work'))).toEqual([])
  })

  test('the cache of a layer is larger than one buffer may be: the next load has a shorter context, and a fixed one says why', async () => {
    const dataDir = temporary()
    const host = {
      ...environment(driver, '0'),
      INFER_CACHE_DIR: cacheWithShaders(dataDir),
      // The cache of a layer for four requests has 2 MiB.
      GGML_VK_FORCE_MAX_BUFFER_SIZE: '2000000',
      GGML_VK_SUBALLOCATION_BLOCK_SIZE: '2000000',
    }
    const of = (id: string, more: object) => Model.parse({ id, engine: 'gguf', source, ...more })
    const [chosen, fixed] = [
      of('chosen', {}),
      of('fixed', { context_length: 4096, concurrency: 4, gpu_layers: 2 }),
    ] as [Model, Model]
    const { fleet } = await fleetOf([chosen, fixed], {
      dataDir,
      environment: host,
      machine: await probeMachine(dataDir, host),
    })
    await fleet.load(chosen)
    expect(fleet.snapshot().residents).toMatchObject([{ modelId: 'chosen', devices: ['gpu0'] }])
    await expect(fleet.load(fixed)).rejects.toThrow(
      /Engine exited \(SIGABRT\): a tensor is larger than one buffer of the GPU can be\..* reduce its context_length/,
    )
  })

  test.for<[when: string, drivers: string, visible: string | undefined, detail: RegExp, advice: RegExp]>([
    [
      'with a driver that crashes',
      crashing,
      '0',
      /^it crashed \(SIGSEGV\)/,
      /^The Vulkan driver has crashed: update it/,
    ],
    [
      'without a driver',
      '/nonexistent.json',
      '0',
      /the Vulkan loader has found no driver that works/,
      /^Install the Vulkan driver/,
    ],
    [
      'with a number that no device has',
      driver,
      '7',
      /GGML_VK_VISIBLE_DEVICES is '7': no such device/,
      /^Correct or remove/,
    ],
    [
      'with a processor that is not named',
      driver,
      undefined,
      /finds no device to compute on/,
      /^Install the Vulkan driver/,
    ],
  ])('%s the reason is said', async ([, drivers, visible, detail, advice], { skip }) => {
    skip(drivers === crashing && !existsSync(crashing), 'the software driver of chromium is not installed')
    const cache = temporary()
    const search = {
      folder: backends,
      devices: [],
      environment: { ...environment(drivers, ''), GGML_VK_VISIBLE_DEVICES: visible },
    }
    for await (const report of searchBackends({ ...search, wrapper: noWrapper, cache, names: ['vulkan'] }))
      expect(report).toMatchObject({
        state: 'fails',
        detail: expect.stringMatching(detail) as string,
        advice: expect.stringMatching(advice) as string,
      })
  })
})
