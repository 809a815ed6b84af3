import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkEngines, checkModelEngines, modelEngines } from '../../../cli/doctor/model-engines.ts'
import { Model } from '../../../core/models/model.ts'
import type { Recognition } from '../../../core/models/recognition/recognition.ts'
import { temporaryFolder } from '../_infer.ts'

const wan: Recognition = {
  is: 'Wan',
  tasks: ['slug/text-to-video'],
  because: '',
  engines: ['python', 'sglang-diffusion'],
}
const of = (engine: string, recognition: Recognition | null, installed: Recognition['engines'] = []) => ({
  id: 'm',
  engine,
  recognition,
  installed,
})

test.each([
  ['no models', [], 'fine', 'none to check', null],
  ['an installed engine that fits', [of('python', wan, ['python'])], 'fine', 'installed, and fit their files', null],
  ['files that infer does not know', [of('vllm', null)], 'fine', 'installed, and fit their files', null],
  ['a program of the user', [of('custom', wan)], 'fine', 'installed, and fit their files', null],
  [
    'an engine that cannot run the files',
    [of('gguf', wan)],
    'warning',
    'm: gguf cannot run Wan',
    "In infer.yaml, set engine: python for 'm'. The engine 'python' is not installed on this machine. Install it with: infer engine setup python",
  ],
  [
    'the same where another engine is installed',
    [of('gguf', wan, ['sglang-diffusion'])],
    'warning',
    'm: gguf cannot run Wan',
    "In infer.yaml, set engine: sglang-diffusion for 'm'.",
  ],
  [
    'an engine that is not installed where another one is',
    [of('python', wan, ['sglang-diffusion'])],
    'warning',
    'm: python is not installed',
    "The engine 'python' is not installed on this machine. Install it with: infer engine setup python. Or set engine: sglang-diffusion for 'm' in infer.yaml, which is installed.",
  ],
])('%s', (_, models, state, detail, advice) => {
  expect(checkModelEngines(models)).toEqual({ name: 'model engines', state, detail, advice })
})

test('files of configured models are read, and files that are damaged or missing are left to other checks', async () => {
  const dataDir = temporaryFolder()
  const folder = join(dataDir, 'wan')
  mkdirSync(join(folder, 'transformer'), { recursive: true })
  writeFileSync(join(folder, 'transformer', 'diffusion_pytorch_model.safetensors'), 'weights')
  writeFileSync(join(folder, 'model_index.json'), '{"_class_name": "WanPipeline"}')
  writeFileSync(join(dataDir, 'x.safetensors'), 'damaged')
  const models = [folder, join(dataDir, 'x.safetensors'), '/nowhere'].map((source, at) =>
    Model.parse({ id: `m${at}`, source }),
  )
  const found = await modelEngines(models, { dataDir, path: '' })
  expect(found.map(({ id, recognition }) => [id, recognition?.is])).toEqual([
    ['m0', 'Wan, a diffusers pipeline (WanPipeline)'],
    ['m1', undefined],
  ])
  expect(checkModelEngines(found).detail).toBe('m0: gguf cannot run Wan, a diffusers pipeline (WanPipeline)')
})

test('the engines that are installed are named with their programs', () => {
  expect(
    checkEngines([
      { engine: 'vllm', path: undefined },
      { engine: 'sd-server', path: '/usr/bin/sd-server' },
    ]),
  ).toEqual({
    name: 'engines',
    state: 'fine',
    detail: 'built in: gguf, sd-server (/usr/bin/sd-server)',
    advice: null,
  })
})
