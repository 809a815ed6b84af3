import { parsed } from '../../schemas/issues.ts'
import { defaultWaitSeconds, EventRequest, EventResult } from '../../schemas/waits.ts'
import type { WaitTaskRecord } from '../task.ts'
import { after, waitTask } from './wait-task.ts'

/** The result of an event; `at` in epoch milliseconds. */
export const eventResult = (body: unknown, at: number, timedOut = false): EventResult => ({
  body,
  at: Math.floor(at / 1000),
  timed_out: timedOut,
})

/** The record of waiting for an event from outside. */
export const eventTask: WaitTaskRecord = {
  ...waitTask,
  id: 'wait/event',
  title: 'an event from outside',
  description: 'Wait until another program sends JSON to the address of the node, and go on with it. Needs no model.',
  sample: { title: 'Payment received', timeout: 3_600 },
  request: EventRequest,
  result: EventResult,
  fill: inputs => parsed(EventRequest, inputs),
  awaits: 'event',
  timesOf: ({ timeout }: EventRequest, now) => ({
    dueAt: after(now, timeout ?? defaultWaitSeconds),
    remindAt: null,
  }),
  resultAtDue: ({ default: given }: EventRequest, at) =>
    given === undefined ? undefined : eventResult(given, at, true),
}
