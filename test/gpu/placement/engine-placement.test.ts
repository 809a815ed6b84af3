import { expect, test } from 'vitest'
import { enginePlacement, type PlacementFacts } from '../../../gpu/placement/engine-placement.ts'

const facts: PlacementFacts = {
  model: { devices: 1 },
  preset: { name: 'gguf', runsOn: 'either' },
  devices: ['cpu'],
  layout: { gpuLayers: 0, layers: 37 },
  gpus: 2,
  gpuFault: null,
  backendFault: null,
}
const setup = 'infer engine setup gpu'

test.each<[string, Partial<PlacementFacts>, string, string, string?]>([
  ['all layers', { devices: ['gpu0'], layout: { gpuLayers: 37, layers: 37 } }, 'gpu', 'on GPU 0, 37 of 37 layers'],
  [
    'two cards and a slice',
    { devices: ['gpu0', 'gpu1.2'], layout: { gpuLayers: 81, layers: 81 } },
    'gpu',
    'on GPU 0 and GPU 1.2, 81 of 81 layers',
  ],
  [
    'two cards for a longer context',
    {
      devices: ['gpu0', 'gpu1'],
      layout: { gpuLayers: 65, layers: 65 },
      longer: { tokens: 32_768, fewerTokens: 8192 },
    },
    'gpu',
    'on GPU 0 and GPU 1, 65 of 65 layers; divided for a context of 32768 tokens, 8192 on fewer GPUs',
  ],
  ['an engine with its own layout', { devices: ['gpu1'], layout: undefined }, 'gpu', 'on GPU 1'],
  [
    'a part of the layers',
    { devices: ['gpu0'], layout: { gpuLayers: 20, layers: 37 } },
    'split',
    'on GPU 0, 20 of 37 layers; the others are on the processor because they do not fit',
  ],
  [
    'a part by its settings',
    { devices: ['gpu0'], layout: { gpuLayers: 20, layers: 37 }, model: { devices: 1, gpu_layers: 20 } },
    'split',
    "on GPU 0, 20 of 37 layers; the others are on the processor by its setting 'gpu_layers'",
  ],
  ['a machine without GPUs', { gpus: 0 }, 'processor', 'on the processor'],
  [
    'a driver that does not answer',
    { gpus: 0, gpuFault: 'nvidia-smi does not answer; the driver may hang.' },
    'processor',
    'on the processor: the GPUs cannot be used (nvidia-smi does not answer; the driver may hang); run infer doctor',
    'infer doctor',
  ],
  [
    'no backend',
    { backendFault: 'the built-in engine has no backend for them' },
    'processor',
    'on the processor: 2 GPUs are not used because the built-in engine has no backend for them; run infer engine setup gpu',
    setup,
  ],
  [
    'a backend that fails, and one GPU',
    { gpus: 1, backendFault: "the backend 'cuda' does not work (it crashed)" },
    'processor',
    "on the processor: the GPU is not used because the backend 'cuda' does not work (it crashed); run infer engine setup gpu",
    setup,
  ],
  [
    'gpu: off, whatever the backends',
    { model: { devices: 1, gpu: 'off' }, backendFault: 'x' },
    'processor',
    "on the processor: 2 GPUs are not used because its setting is 'gpu: off'",
  ],
  [
    'devices: cpu',
    { model: { devices: 'cpu' } },
    'processor',
    "on the processor: 2 GPUs are not used because its setting is 'devices: cpu'",
  ],
  [
    'nothing fits',
    { devices: ['gpu0'] },
    'processor',
    'on the processor: 2 GPUs are not used because none of its 37 layers fits there',
  ],
  [
    'gpu_layers: 0',
    { devices: ['gpu0'], model: { devices: 1, gpu_layers: 0 } },
    'processor',
    "on the processor: 2 GPUs are not used because its setting is 'gpu_layers: 0'",
  ],
  [
    'an engine for processors',
    { preset: { name: 'piper', runsOn: 'cpu' }, layout: undefined },
    'processor',
    "on the processor: 2 GPUs are not used because the engine 'piper' knows no GPUs",
  ],
  [
    'a backend that came later',
    {},
    'processor',
    'on the processor: 2 GPUs are not used because it was loaded before they could be used; it moves there with its next load',
  ],
  [
    'a remote engine',
    { preset: { name: 'remote', runsOn: 'elsewhere' }, devices: [], layout: undefined },
    'elsewhere',
    'on a server that infer does not start',
  ],
])('%s', (_, changes, on, detail, advice) => {
  expect(enginePlacement({ ...facts, ...changes })).toMatchObject({ on, detail, advice: advice ?? null })
})

test('what would make its context longer is said unless it has more cards for that', () => {
  const placed = { ...facts, devices: ['gpu0'], layout: { gpuLayers: 37, layers: 37 }, longerContext: ['A way.'] }
  expect(enginePlacement(placed).longerContext).toEqual(['A way.'])
  expect(enginePlacement({ ...placed, longer: { tokens: 32_768, fewerTokens: 8192 } }).longerContext).toEqual([])
})
