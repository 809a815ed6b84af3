import { expect, test, vi } from 'vitest'
import { runningRecord } from '../../../core/jobs/call.ts'
import { requestedCall } from '../../../core/jobs/slot-requests.ts'
import { callsIn } from '../../../core/store/ledger-rows.ts'
import type { FrontWork } from '../../../server/fronts/messages.ts'
import { openOutbox } from '../../../server/fronts/outbox.ts'
import { finishedCall } from '../../core/store/_store.ts'

const december = Date.UTC(2026, 11, 1)

function open() {
  const sent: FrontWork[] = []
  const outbox = openOutbox({ send: work => void sent.push(work), collect() {}, pending: () => undefined })
  return { outbox, sent }
}

test('a message has the records as one text, and what each token has used in a month as one sum', () => {
  const { outbox, sent } = open()
  const calls = [
    finishedCall({ tokenId: 'a', cost: 2, finishedAt: december - 1 }),
    finishedCall({ tokenId: 'a', cost: 3, finishedAt: december - 1 }),
    finishedCall({ tokenId: 'a', cost: 4, finishedAt: december }),
    finishedCall({ tokenId: 'b', cost: 0, finishedAt: december }),
    finishedCall({ tokenId: 'c', cost: 0, usage: { inputTokens: 0, outputTokens: 0 } }),
  ]
  for (const call of calls) outbox.record(call, [call.tokenId])
  outbox.flush()
  const [work] = sent as [FrontWork]
  expect(work.records!.calls).toBe(5)
  expect(callsIn(work.records!.text).map(({ id }) => id)).toEqual(calls.map(({ id }) => id))
  expect(work.uses!.map(({ tokenId, tokens, cost, finishedAt }) => [tokenId, tokens, cost, finishedAt])).toEqual([
    ['a', 30, 5, december - 1],
    ['a', 15, 4, december],
    ['b', 15, 0, december],
  ])
  outbox.flush()
  expect(sent).toHaveLength(1)
})

test('only the end of a call that control knows of is told by its id', () => {
  const { outbox, sent } = open()
  const [known, unknown] = [finishedCall(), finishedCall()]
  const request = { ...known, requestedModel: null, traceparent: undefined, prompt: undefined }
  outbox.began(runningRecord(requestedCall(request)))
  outbox.record(known, [])
  outbox.record(unknown, [])
  outbox.flush()
  expect(sent[0]!.ended).toEqual([known.id])
  expect(outbox.knows(known.id)).toBe(false)
})

test('durations of one kind are sent together, and a request for a slot waits for nothing', () => {
  vi.useFakeTimers()
  using _ = { [Symbol.dispose]: () => void vi.useRealTimers() }
  const { outbox, sent } = open()
  for (const ms of [1, 2]) outbox.answered('/chat', 200, ms)
  outbox.answered('/chat', 400, 3)
  const request = requestedCall({ ...finishedCall(), requestedModel: null, traceparent: undefined, prompt: undefined })
  outbox.wanted({ ...request, prompt: undefined })
  vi.advanceTimersByTime(1)
  expect(sent).toHaveLength(1)
  expect(sent[0]!.answered).toEqual([
    { path: '/chat', status: 200, ms: [1, 2] },
    { path: '/chat', status: 400, ms: [3] },
  ])
  expect(sent[0]!.wanted).toHaveLength(1)
})
