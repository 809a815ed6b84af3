import { invalid } from '../../failure.ts'
import { parsed } from '../../schemas/issues.ts'
import { maxWaitSeconds, UntilRequest, UntilResult } from '../../schemas/waits.ts'
import type { WaitTaskRecord } from '../task.ts'
import { after, waitTask } from './wait-task.ts'

/** The record of waiting for a time. */
export const untilTask: WaitTaskRecord = {
  ...waitTask,
  id: 'wait/until',
  title: 'a point in time',
  description: 'Wait until a point in time or for a number of seconds. Needs no model.',
  sample: { seconds: 60 },
  request: UntilRequest,
  result: UntilResult,
  fill: inputs => parsed(UntilRequest, inputs),
  awaits: 'time',
  timesOf({ at, seconds }: UntilRequest, now) {
    const dueAt = typeof at === 'number' ? at * 1000 : at === undefined ? after(now, seconds) : Date.parse(at)
    if (dueAt !== null && dueAt > now + maxWaitSeconds * 1000)
      throw invalid('at', `A node waits a year at most, and ${new Date(dueAt).toISOString()} is later.`)
    return { dueAt, remindAt: null }
  },
  resultAtDue: (_stored: UntilRequest, at): UntilResult => ({ at: Math.floor(at / 1000) }),
}
