import { expect, test } from 'vitest'
import { withStepSlots } from '../../../core/jobs/step-slots.ts'
import type { SlotQueue } from '../../../core/models/fleet.ts'
import { noModelId } from '../../../core/schemas/task-table.ts'
import { slotsOnly } from './_fleet.ts'

test('a bounded number of slots is given besides those of the models, and offered again when it is free', async () => {
  const { fleet } = slotsOnly({ slots: 1 })
  const slots = withStepSlots(fleet, 2)
  const served: string[] = []
  slots.connect({ serve: modelId => void served.push(modelId), waits: () => false } as Partial<SlotQueue> as SlotQueue)
  const [first, second] = [slots.take(noModelId), slots.take(noModelId)]
  expect([first!.modelId, second!.used(), slots.take(noModelId)]).toEqual([
    noModelId,
    { gpuMs: 0, energyMj: null },
    undefined,
  ])
  expect(slots.take('m')!.modelId).toBe('m')
  expect(slots.take('m')).toBeUndefined()
  served.length = 0
  first!.release()
  first!.release()
  await expect.poll(() => served).toEqual([noModelId])
  expect([slots.take(noModelId)?.modelId, slots.take(noModelId)]).toEqual([noModelId, undefined])
  expect([slots.activity(noModelId).status, slots.snapshot().models[noModelId]?.status]).toEqual(['warm', 'warm'])
})
