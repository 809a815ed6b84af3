import type { Fleet, SlotQueue } from '../models/fleet.ts'
import { noModelId } from '../schemas/task-table.ts'
import { noSlot } from './no-slot.ts'

type Slots = Pick<Fleet, 'take' | 'demandChanged' | 'connect' | 'activity' | 'slots' | 'snapshot'>

/** As many as threads, so that the time limit of a step does not run while it waits for one. */
const atOnce = 2

/**
 * Adds the slots of jobs without a model to those of the fleet. They wait in the queue like the jobs of a model, so that
 * organizations take turns, and a bounded number of them runs.
 */
export function withStepSlots(fleet: Slots, max = atOnce): Slots {
  let taken = 0
  let queue: SlotQueue | undefined
  const activity = {
    status: 'warm',
    reason: null,
    paused: false,
    etaMs: 0,
    retryMs: 0,
    etaIsMeasured: true,
    engineStarts: 0,
    engineFailures: 0,
  } as const

  function take() {
    if (taken >= max) return undefined
    taken++
    let released = false
    const release = () => {
      if (released) return
      released = true
      taken--
      // Not from here: the run that releases it is not counted as ended yet.
      setImmediate(() => queue?.serve(noModelId))
    }
    return { ...noSlot(noModelId), release, [Symbol.dispose]: release }
  }

  return {
    take: (modelId, ...more) => (modelId === noModelId ? take() : fleet.take(modelId, ...more)),
    // Slots are offered when they are released: nothing has to be loaded.
    demandChanged: modelId => (modelId === noModelId ? undefined : fleet.demandChanged(modelId)),
    connect(connected) {
      queue = connected
      fleet.connect(connected)
    },
    activity: modelId => (modelId === noModelId ? activity : fleet.activity(modelId)),
    slots: modelId => (modelId === noModelId ? { ready: max, planned: max } : fleet.slots(modelId)),
    snapshot() {
      const snapshot = fleet.snapshot()
      return { ...snapshot, models: { ...snapshot.models, [noModelId]: activity } }
    },
  }
}
