import { noMetering } from '../metering.ts'
import type { StepTaskRecord } from '../task.ts'

/** What the records of the tasks without a model have in common. */
export const stepTask = {
  runner: 'step',
  family: 'step',
  category: 'text',
  features: [],
  aliases: [],
  otherFields: {},
  modelFaults: () => [],
  takesFiles: false,
  isMediaPath: () => false,
  isRepeatable: () => true,
  metering: noMetering,
  form: { panel: 'fields', hidden: [], first: [] },
  requestAgain: (stored: object): object => stored,
} as const satisfies Partial<StepTaskRecord>
