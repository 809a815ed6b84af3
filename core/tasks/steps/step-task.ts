import type { StepTaskRecord } from '../task.ts'
import { withoutModel } from '../without-model.ts'

/** What the records of the tasks without a model have in common. */
export const stepTask = {
  ...withoutModel,
  runner: 'step',
  family: 'step',
  isRepeatable: () => true,
} as const satisfies Partial<StepTaskRecord>
