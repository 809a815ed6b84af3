import type { WaitTaskRecord } from '../task.ts'
import { withoutModel } from '../without-model.ts'

/** What the records of the tasks that wait have in common. */
export const waitTask = {
  ...withoutModel,
  runner: 'wait',
  family: 'wait',
  isRepeatable: () => false,
} as const satisfies Partial<WaitTaskRecord>

/** A number of seconds from a time in epoch milliseconds; null without one. */
export const after = (now: number, seconds: number | undefined): number | null =>
  seconds === undefined ? null : now + Math.round(seconds * 1000)
