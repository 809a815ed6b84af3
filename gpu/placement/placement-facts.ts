import type { Model } from '../../core/models/model.ts'
import type { ProcessorThreads } from '../../core/models/model-plan.ts'
import { presetOf } from '../presets/presets.ts'
import type { Resident } from '../residency/model-state.ts'
import type { openCardBackends } from './card-backend.ts'
import { enginePlacement } from './engine-placement.ts'
import type { Memory } from './memory.ts'
import { processorThreads } from './processor-threads.ts'

/** Returns a function that says where an engine of a model runs in a layout on these devices, by what is known now. */
export const placementsBy =
  (memory: Pick<Memory, 'devices' | 'fault'>, backends: Pick<ReturnType<typeof openCardBackends>, 'fault'>) =>
  (model: Model, { placement, longer }: Pick<Resident, 'placement' | 'longer'>, devices: readonly string[]) =>
    enginePlacement({
      model,
      preset: presetOf(model),
      pool: placement.pool,
      devices,
      layout: placement.plan?.layout,
      longer,
      longerContext: placement.longerContext,
      gpus: memory.devices().filter(({ kind }) => kind !== 'cpu').length,
      gpuFault: memory.fault(),
      backendFault: backends.fault(model),
    })

/**
 * Returns a function that chooses the threads of an engine of a model on these devices: null if it computes on GPUs alone,
 * or chooses them itself.
 */
export const threadsBy =
  (memory: Pick<Memory, 'cores' | 'physicalCores'>, residents: () => readonly Resident[]) =>
  (model: Model, devices: readonly string[], engineId?: string): ProcessorThreads | null => {
    const computes = (one: Model, on: readonly string[]) => on.includes('cpu') && takesThreads(one)
    if (!computes(model, devices)) return null
    const others = residents().filter(
      one => one.engineId !== engineId && one.state !== 'stopping' && computes(one.serves.model, one.devices),
    )
    return processorThreads(model.threads, { ...memory, others: others.length })
  }

/** Whether an engine of the model gets a number of threads, and the model does not say another. */
const takesThreads = (model: Model): boolean =>
  (presetOf(model).takesThreads === true || model.command?.some(part => part.includes('{threads}')) === true) &&
  !model.args.some(arg => /^(-t|--threads)(=|$)/.test(arg))
