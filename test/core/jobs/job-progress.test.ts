import { expect, test } from 'vitest'
import { Failure, type FailureMore } from '../../../core/failure.ts'
import { type JobProgress, type ProgressFacts, progressOf } from '../../../core/jobs/job-progress.ts'
import type { ModelActivity } from '../../../core/models/fleet.ts'
import { noModelId } from '../../../core/schemas/task-table.ts'
import { deferredUntil, type JobRecord } from '../../../core/store/store.ts'
import { warm } from './_fleet.ts'

const now = 1_000_000
const activity = (more: Partial<ModelActivity> = {}): ModelActivity => ({ ...warm, ...more })
const facts: ProgressFacts = {
  now,
  run: undefined,
  position: 0,
  expectedMs: 4_000,
  typicalMs: 2_000,
  model: { enabled: true },
  activity: activity(),
  slots: 1,
  freeSlots: 0,
  pause: undefined,
}
const job = (more: Partial<JobRecord>): JobRecord =>
  ({
    modelId: 'm',
    status: 'pending',
    notBefore: now - 10,
    awaits: null,
    claims: 0,
    attempt: 0,
    maxAttempts: 3,
    error: null,
    ...more,
  }) as JobRecord
const error = {
  code: 'worker_error',
  message: 'Engine exited.',
  type: 'server_error',
  retryable: true,
  attempt: 1,
} as const

const refused = (code: Failure['code'], message: string, more: FailureMore = {}) => ({
  failure: new Failure(code, message, more),
  forMs: 500,
})
const nothing = { progress: null, queuePosition: null, etaMs: null, waitingFor: null }

test.each<[rule: string, job: Partial<JobRecord>, facts: Partial<ProgressFacts>, expected: Partial<JobProgress>]>([
  ['a job that has ended well is whole', { status: 'completed' }, {}, { ...nothing, progress: 1 }],
  ['of one that failed nothing is said', { status: 'failed' }, {}, nothing],
  ['of one that was cancelled neither', { status: 'cancelled' }, {}, nothing],
  [
    'a run tells its progress, and the rest follows',
    { status: 'processing' },
    { run: { progress: 0.5, ranMs: 700 } },
    { ...nothing, progress: 0.5, etaMs: 700 },
  ],
  [
    'a run that tells none takes as long as usual',
    { status: 'processing' },
    { run: { progress: null, ranMs: 700 } },
    { ...nothing, etaMs: 3_300 },
  ],
  ['a run of which nothing is known here', { status: 'processing' }, {}, nothing],
  [
    'it waits for a paused device, also while the engine there ends its requests',
    {},
    { activity: activity({ status: 'cold', paused: true, reason: "'m' waits: gpu0 is paused.", etaMs: 9_000 }) },
    {
      waitingFor: { reason: 'paused', detail: "'m' waits: gpu0 is paused.", etaMs: 9_000 },
      queuePosition: 0,
      etaMs: 13_000,
    },
  ],
  [
    'nobody knows when the pause ends',
    {},
    { activity: activity({ status: 'cold', paused: true, reason: 'Paused.' }) },
    { waitingFor: { reason: 'paused', detail: 'Paused.', etaMs: null }, etaMs: null },
  ],
  [
    'the next one waits for the slot',
    {},
    {},
    {
      queuePosition: 0,
      etaMs: 6_000,
      waitingFor: { reason: 'queue', detail: "It is next: the slot of 'm' is busy.", etaMs: 2_000 },
    },
  ],
  [
    'one without a model waits for others without one',
    { modelId: noModelId },
    { slots: 0 },
    { waitingFor: { reason: 'queue', detail: 'It is next: other steps without a model run.', etaMs: 2_000 } },
  ],
  [
    'one that is not next waits for those before it',
    {},
    { position: 3 },
    { queuePosition: 3, etaMs: 12_000, waitingFor: { reason: 'queue', detail: '3 jobs go before it.', etaMs: 8_000 } },
  ],
  [
    'one job goes, not one jobs go',
    {},
    { position: 1 },
    { waitingFor: { reason: 'queue', detail: '1 job goes before it.', etaMs: 4_000 } },
  ],
  [
    'with a slot free it is about to begin',
    {},
    { freeSlots: 1 },
    { etaMs: 4_000, waitingFor: { reason: 'queue', detail: 'It begins at any moment.', etaMs: 0 } },
  ],
  [
    'before anything has run nothing is promised',
    {},
    { typicalMs: null, expectedMs: null },
    {
      queuePosition: 0,
      etaMs: null,
      waitingFor: { reason: 'queue', detail: "It is next: the slot of 'm' is busy.", etaMs: null },
    },
  ],
  [
    'one that is set aside waits for what ends it, and has no place in the queue',
    { awaits: 'approval', notBefore: deferredUntil },
    {},
    {
      queuePosition: null,
      etaMs: null,
      waitingFor: { reason: 'approval', detail: 'It ends when a person has answered.', etaMs: null },
    },
  ],
  [
    'a delayed one waits for its time',
    { notBefore: now + 120_000 },
    {},
    {
      queuePosition: null,
      etaMs: 124_000,
      waitingFor: {
        reason: 'not_before',
        detail: 'It starts in about 2 min at the earliest (not_before).',
        etaMs: 120_000,
      },
    },
  ],
  [
    'one that was refused again and again waits to be tried again',
    { notBefore: now + 8_000, claims: 6, attempt: 0 },
    { position: undefined },
    {
      queuePosition: null,
      etaMs: 12_000,
      waitingFor: {
        reason: 'retry',
        detail:
          'It was refused 6 times for lack of capacity, and lets others go first. It is tried again in about 8 s.',
        etaMs: 8_000,
      },
    },
  ],
  [
    'one that failed waits to be tried again, and says why',
    { notBefore: now + 3_000, error },
    {},
    {
      queuePosition: null,
      etaMs: 7_000,
      waitingFor: {
        reason: 'retry',
        detail: 'Attempt 1 of 3 failed: Engine exited. It is tried again in about 3 s.',
        etaMs: 3_000,
      },
    },
  ],
  [
    'a disabled model is waited for',
    {},
    { model: { enabled: false } },
    {
      queuePosition: 0,
      etaMs: null,
      waitingFor: {
        reason: 'model_disabled',
        detail: "The model 'm' is disabled here. The job waits for it.",
        etaMs: null,
      },
    },
  ],
  [
    'a model that loads',
    {},
    { slots: 0, activity: activity({ status: 'loading', etaMs: 5_000 }) },
    { etaMs: 9_000, waitingFor: { reason: 'model_loading', detail: "The model 'm' is being loaded.", etaMs: 5_000 } },
  ],
  [
    'a model that is started again after it failed',
    {},
    { slots: 0, activity: activity({ status: 'loading', reason: 'It exited (3).', engineFailures: 1 }) },
    {
      waitingFor: {
        reason: 'engine_failing',
        detail: "The model 'm' is being started again: It exited (3).",
        etaMs: null,
      },
    },
  ],
  [
    'a model that is not loaded and has no room',
    {},
    { slots: 0, activity: activity({ status: 'cold', reason: 'All memory is in use.' }) },
    { etaMs: null, waitingFor: { reason: 'no_capacity', detail: 'All memory is in use.', etaMs: null } },
  ],
  [
    'a model that waits for the memory of another has a time, also before a job of it has ended',
    {},
    {
      slots: 0,
      typicalMs: null,
      activity: activity({ status: 'cold', reason: "It waits for 'b'.", etaMs: 5_000 }),
    },
    { etaMs: 9_000, waitingFor: { reason: 'no_capacity', detail: "It waits for 'b'.", etaMs: 5_000 } },
  ],
  [
    'a model whose engine cannot be started',
    {},
    { slots: 0, activity: activity({ status: 'unavailable', reason: 'It exited (3).', engineFailures: 5 }) },
    { waitingFor: { reason: 'engine_failing', detail: 'It exited (3).', etaMs: null } },
  ],
  [
    'a load that failed is told until it is tried again',
    {},
    { slots: 0, pause: refused('worker_error', "Model 'm' cannot be started: no file.") },
    { waitingFor: { reason: 'engine_failing', detail: "Model 'm' cannot be started: no file.", etaMs: 2_500 } },
  ],
  [
    'missing capacity of an engine that cannot be started is a failing engine',
    {},
    { pause: refused('no_capacity', 'It keeps failing.', { facts: { failed_starts: 2 } }) },
    { waitingFor: { reason: 'engine_failing', detail: 'It keeps failing.', etaMs: 2_500 } },
  ],
  [
    'no capacity',
    {},
    { pause: refused('no_capacity', 'No card has so much memory.') },
    { waitingFor: { reason: 'no_capacity', detail: 'No card has so much memory.', etaMs: 2_500 } },
  ],
  [
    'no capacity for ever',
    {},
    { pause: refused('no_capacity', 'No card has so much memory.', { final: true }) },
    { waitingFor: { reason: 'no_capacity', detail: 'No card has so much memory.', etaMs: 2_500, final: true } },
  ],
  [
    'a model that was not ready in time',
    {},
    { pause: refused('model_warming_up', 'It still loads.') },
    { waitingFor: { reason: 'model_loading', detail: 'It still loads.', etaMs: 2_500 } },
  ],
])('%s', (_, record, more, expected) => {
  expect(progressOf(job(record), { ...facts, ...more })).toMatchObject(expected)
})
