import type { FrontLimits } from '../../core/admission/front-limits.ts'
import type { FinishedJob, JobRecord } from '../../core/store/store.ts'
import type { FrontWork } from './messages.ts'

/** Milliseconds for which messages are collected. */
const everyMs = 50
/** At this number of records they are sent at once. */
const maxRecords = 512
/** Records that control has not stored, at most; at this number control answers. */
const mostUnstored = 20_000

type Lists = Required<Omit<FrontWork, 'credits'>>

const emptyLists = (): Lists => ({
  records: [],
  tokenIds: [],
  began: [],
  passedOn: [],
  answered: [],
  timings: [],
  tokens: [],
  secrets: [],
  lacking: [],
  returned: [],
})

/**
 * Collects what a front tells control, so that one message is about many requests. `collect` adds what is known only when it
 * is sent; `pending` is that of `openFrontLimits`.
 */
export function openOutbox({
  send,
  collect,
  pending,
}: {
  send: (work: FrontWork) => void
  collect: (lists: Lists) => void
  pending: FrontLimits['pending']
}) {
  let lists = emptyLists()
  let timer: NodeJS.Timeout | undefined
  let accepted = 0
  let stored = 0

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const { records } = lists
    collect(lists)
    const work = Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)) as FrontWork
    const credits = pending(Object.keys(work).length > 0)
    if (credits) work.credits = credits
    if (Object.keys(work).length === 0) return
    lists = emptyLists()
    accepted += records.length
    send(work)
  }

  const soon = (): void => void (timer ??= setTimeout(flush, everyMs))

  return {
    record(this: void, finished: FinishedJob, tokenIds: readonly string[]): void {
      lists.records.push(finished)
      if (finished.cost > 0) lists.tokenIds.push(tokenIds)
      if (lists.records.length >= maxRecords) flush()
      else soon()
    },
    began(call: JobRecord): void {
      lists.began.push(call)
    },
    passedOn(id: string): void {
      lists.passedOn.push(id)
      soon()
    },
    answered(this: void, path: string, status: number, ms: number): void {
      lists.answered.push(path, status, ms)
      soon()
    },
    timing(this: void, ...timing: [kind: string, modelId: string, ms: number]): void {
      lists.timings.push(...timing)
    },
    secret(this: void, secret: string): void {
      lists.secrets.push(secret)
      soon()
    },
    lacking(this: void, modelId: string): void {
      if (lists.lacking.includes(modelId)) return
      lists.lacking.push(modelId)
      soon()
    },
    /** Slots go back at once, because a request may wait for them. */
    returned(this: void, engineId: string, slots: number, ranMs: number | null): void {
      lists.returned.push(engineId, slots, ranMs)
      setImmediate(flush)
    },
    /** Control has stored so many records since the start. */
    stored: (records: number): void => void (stored = records),
    /** Whether control must catch up before further calls begin here. */
    isFull: (): boolean => accepted + lists.records.length - stored >= mostUnstored,
    soon,
    flush,
  }
}
export type Outbox = ReturnType<typeof openOutbox>
