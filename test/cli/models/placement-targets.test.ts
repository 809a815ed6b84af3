import { expect, test } from 'vitest'
import { openPlacementTargets } from '../../../cli/models/engine-programs.ts'
import { Model } from '../../../core/models/model.ts'

test.each(['vllm', 'sglang'])('%s runs on the processor where the model says so', async engine => {
  const targets = openPlacementTargets('/nowhere')
  const model = Model.parse({ id: 'x', engine, source: '/x', tasks: ['std/chat-completion'], devices: 'cpu' })
  expect(await targets.targetFor(model)).toMatchObject({ kind: 'cpu', devices: 1, capacity: targets.mainMemory() })
})
