import { presetOf } from '../presets/presets.ts'
import type { ModelState } from '../residency/model-state.ts'
import type { openCardBackends } from './card-backend.ts'
import { enginePlacement } from './engine-placement.ts'
import type { Memory } from './memory.ts'

/** Returns a function that says where an engine of a model runs on these devices, by what is known now. */
export const placementsBy =
  (memory: Pick<Memory, 'devices' | 'fault'>, backends: Pick<ReturnType<typeof openCardBackends>, 'fault'>) =>
  ({ model, placement: { plan } }: ModelState, devices: readonly string[]) =>
    enginePlacement({
      model,
      preset: presetOf(model),
      devices,
      layout: plan?.layout,
      gpus: memory.devices().filter(({ kind }) => kind !== 'cpu').length,
      gpuFault: memory.fault(),
      backendFault: backends.fault(model),
    })
