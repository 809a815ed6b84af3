import { expect, test } from 'vitest'
import { type Admittance, admittanceOf, maxQueued } from '../../../core/dag/admittance.ts'
import { Concurrency } from '../../../core/dag/concurrency.ts'

const queue = Concurrency.parse({ limit: 2 })
const refuse: Concurrency = { limit: 2, when_reached: 'refuse' }
const cancel: Concurrency = { limit: 2, when_reached: 'cancel_oldest' }

test.for<[rule: string, Concurrency, running: number, queued: number, Admittance]>([
  ['one below the limit starts', queue, 1, 0, { how: 'start', cancel: 0 }],
  ['one at the limit waits, which is the default', queue, 2, 0, { how: 'queue' }],
  ['nobody overtakes those that wait', queue, 1, 1, { how: 'queue' }],
  ['those that wait are limited', queue, 2, maxQueued, { how: 'queue_full' }],
  ['one at the limit is refused', refuse, 2, 0, { how: 'refuse' }],
  ['one below the limit is not refused', refuse, 1, 0, { how: 'start', cancel: 0 }],
  ['below the limit nothing is cancelled', cancel, 1, 0, { how: 'start', cancel: 0 }],
  ['at the limit the oldest one is cancelled', cancel, 2, 0, { how: 'start', cancel: 1 }],
  ['above a lowered limit as many as needed', cancel, 4, 1, { how: 'start', cancel: 4 }],
])('%s', ([, concurrency, running, queued, admittance]) => {
  expect(admittanceOf(concurrency, { running, queued })).toEqual(admittance)
})
