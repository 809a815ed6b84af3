import type { FrontLimits } from '../../core/admission/front-limits.ts'
import type { SlotRequest } from '../../core/jobs/slot-requests.ts'
import { monthOf } from '../../core/month.ts'
import { addLedgerRow, type LedgerRows } from '../../core/store/ledger-rows.ts'
import type { FinishedJob, JobRecord } from '../../core/store/store.ts'
import type { Timing } from '../metrics/timings.ts'
import type { Durations, FrontWork, TokenUse } from './messages.ts'

/** Milliseconds for which messages are collected. */
const everyMs = 50
/** At this number of records they are sent at once. */
const maxRecords = 512
/** Records that control has not stored, at most; at this number control answers. */
const mostUnstored = 20_000

/** What is collected as lists and sent as it is. */
type Lists = Required<
  Pick<FrontWork, 'began' | 'ended' | 'tokens' | 'secrets' | 'wanted' | 'withdrawn' | 'ran' | 'lacking' | 'returned'>
>

const emptyLists = (): Lists => ({
  began: [],
  ended: [],
  tokens: [],
  secrets: [],
  wanted: [],
  withdrawn: [],
  ran: [],
  lacking: [],
  returned: [],
})

/** Durations by kind, so that the names of a kind are sent once. */
function openDurations<Kind extends object>() {
  const byName = new Map<string, Durations<Kind>>()
  return {
    add(name: string, ms: number, kind: () => Kind): void {
      const known = byName.get(name)
      if (known) known.ms.push(ms)
      else byName.set(name, { ...kind(), ms: [ms] })
    },
    take(): Durations<Kind>[] {
      const all = [...byName.values()]
      byName.clear()
      return all
    },
  }
}

/**
 * Collects what a front tells control, so that one message is about many requests, and control does little for each of
 * them. `collect` adds what is known only when it is sent; `pending` is that of `openFrontLimits`.
 */
export function openOutbox({
  send,
  collect,
  pending,
}: {
  send: (work: FrontWork) => void
  collect: (lists: Pick<Lists, 'tokens'>) => void
  pending: FrontLimits['pending']
}) {
  let lists = emptyLists()
  let rows: LedgerRows = []
  let records = 0
  /** By token and month. */
  const uses = new Map<string, TokenUse>()
  const answered = openDurations<{ path: string; status: number }>()
  const timings = openDurations<{ kind: Timing; modelId: string }>()
  /** Calls that control knows of. */
  const told = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  let isDue = false
  let accepted = 0
  let stored = 0
  let month = monthOf(Date.now())

  /** `open`: how many requests are being answered, which is told in any case. */
  function flush(open?: number): void {
    clearTimeout(timer)
    timer = undefined
    isDue = false
    collect(lists)
    const all = { ...lists, uses: [...uses.values()], answered: answered.take(), timings: timings.take() }
    const work = Object.fromEntries(Object.entries(all).filter(([, list]) => list.length > 0)) as FrontWork
    if (open !== undefined) work.open = open
    if (records > 0) work.records = { text: JSON.stringify(rows), calls: records }
    const credits = pending(Object.keys(work).length > 0)
    if (credits) work.credits = credits
    if (Object.keys(work).length === 0) return
    accepted += records
    lists = emptyLists()
    rows = []
    records = 0
    uses.clear()
    send(work)
  }

  /** At the end of this turn, together with what else happens in it. */
  function atOnce(): void {
    if (isDue) return
    isDue = true
    setImmediate(() => flush())
  }

  const soon = (): void => void (timer ??= setTimeout(() => flush(), everyMs))

  function addUse({ organizationId, tokenId, usage, cost, finishedAt }: FinishedJob, tokenIds: readonly string[]) {
    const tokens = usage.inputTokens + usage.outputTokens
    if (tokens === 0 && cost === 0) return
    // Spending is counted by month.
    if (finishedAt < month.start || finishedAt >= month.end) month = monthOf(finishedAt)
    const name = `${tokenId} ${month.start}`
    const use = uses.get(name)
    if (!use) return void uses.set(name, { organizationId, tokenId, tokenIds, tokens, cost, finishedAt })
    use.tokens += tokens
    use.cost += cost
  }

  function isEnded(id: string): void {
    if (told.delete(id)) lists.ended.push(id)
  }

  return {
    record(this: void, finished: FinishedJob, tokenIds: readonly string[]): void {
      addLedgerRow(rows, 'sync', finished)
      records++
      addUse(finished, tokenIds)
      isEnded(finished.id)
      if (records >= maxRecords) flush()
      else soon()
    },
    /** A call has run for a while. */
    began(call: JobRecord): void {
      told.add(call.id)
      lists.began.push(call)
      soon()
    },
    /** Whether control knows of the call. */
    knows: (id: string): boolean => told.has(id),
    /** Control answers the call instead. */
    passedOn(this: void, id: string): void {
      isEnded(id)
      soon()
    },
    answered(this: void, path: string, status: number, ms: number): void {
      answered.add(`${status} ${path}`, ms, () => ({ path, status }))
      soon()
    },
    timing(this: void, kind: Timing, modelId: string, ms: number): void {
      timings.add(`${kind} ${modelId}`, ms, () => ({ kind, modelId }))
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
    /** A call wants a slot. */
    wanted(this: void, request: SlotRequest): void {
      told.add(request.id)
      lists.wanted.push(request)
      atOnce()
    },
    /** A call that wanted a slot wants none any more. */
    withdrawn(this: void, id: string): void {
      lists.withdrawn.push(id)
      atOnce()
    },
    /** Control does not know of the call any more. */
    refused: (id: string): void => void told.delete(id),
    /** A call that had to ask for its slot has ended; its slot is returned afterwards. */
    ran(this: void, id: string, ms: number, completed: boolean): void {
      lists.ran.push(id, ms, completed ? 1 : 0)
    },
    /** Slots go back at once, because a request may wait for them. */
    returned(this: void, engineId: string, slots: number, ranMs: number | null): void {
      lists.returned.push(engineId, slots, ranMs)
      atOnce()
    },
    /** Control has stored so many records since the start. */
    stored: (count: number): void => void (stored = count),
    /** Whether control must catch up before further calls begin here. */
    isFull: (): boolean => accepted + records - stored >= mostUnstored,
    soon,
    flush,
  }
}
export type Outbox = ReturnType<typeof openOutbox>
