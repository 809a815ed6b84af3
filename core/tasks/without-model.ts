import { noMetering } from './metering.ts'
import type { TaskRecord } from './task.ts'

/** What the records of all tasks without a model have in common: those of steps and of waits. */
export const withoutModel = {
  category: 'text',
  features: [],
  aliases: [],
  otherFields: {},
  modelFaults: () => [],
  takesFiles: false,
  isMediaPath: () => false,
  metering: noMetering,
  form: { panel: 'fields', hidden: [], first: [] },
  requestAgain: (stored: object): object => stored,
} as const satisfies Partial<TaskRecord>
