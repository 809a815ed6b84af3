import { noMetering } from '../metering.ts'
import type { WaitTaskRecord } from '../task.ts'

/** What the records of the tasks that wait have in common. */
export const waitTask = {
  runner: 'wait',
  family: 'wait',
  category: 'text',
  features: [],
  aliases: [],
  otherFields: {},
  modelFaults: () => [],
  takesFiles: false,
  isMediaPath: () => false,
  isRepeatable: () => false,
  metering: noMetering,
  form: { panel: 'fields', hidden: [], first: [] },
  requestAgain: (stored: object): object => stored,
} as const satisfies Partial<WaitTaskRecord>

/** A number of seconds from a time in epoch milliseconds; null without one. */
export const after = (now: number, seconds: number | undefined): number | null =>
  seconds === undefined ? null : now + Math.round(seconds * 1000)
