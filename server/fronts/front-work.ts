import type { Accounts } from '../../core/accounts/accounts.ts'
import type { TokenLimiter } from '../../core/accounts/token-limiter.ts'
import type { Credits } from '../../core/admission/credits.ts'
import { Failure } from '../../core/failure.ts'
import type { CallsElsewhere } from '../../core/jobs/call.ts'
import type { Recorder } from '../../core/jobs/recorder.ts'
import type { Log } from '../../core/log.ts'
import { pick } from '../../core/members.ts'
import type { Config } from '../../core/models/config.ts'
import type { Registry } from '../../core/models/registry.ts'
import type { SlotGrants } from '../../core/models/slot-grants.ts'
import { type FinishedJob, type JobRecord, jobErrorOf } from '../../core/store/store.ts'
import { noUsage } from '../../core/usage.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Throughput } from '../metrics/throughput.ts'
import type { Timing, Timings } from '../metrics/timings.ts'
import type { FromFront, FrontWork, ToFront } from './messages.ts'

/** Milliseconds between two looks at the engines of granted slots. */
const lookMs = 100
/** Milliseconds between two looks at requests that wait for credits. */
const tickMs = 250
/** Milliseconds in which a front must do what control waits for. */
const answerMs = 2_000

/** What the record of a call has from its beginning. */
const callFacts = [
  'id',
  'organizationId',
  'tokenId',
  'task',
  'modelId',
  'requestedModel',
  'fallbackReason',
  'createdAt',
  'startedAt',
  'referenceQueueMs',
  'engineId',
] as const satisfies (keyof JobRecord)[]

/** One front, as its work is seen by control. */
export interface FrontLink {
  send: (message: ToFront) => void
  /** Ends it at once. */
  kill: () => void
}

/** Takes in what a front says. */
export interface FrontSession {
  received(message: FromFront): void
  /** The front has ended: what it had goes back, and what it was doing has failed. */
  ended(): void
}

interface Session extends FrontLink {
  /** As credits name it. */
  id: string
  /** Slots that it has, by engine. */
  granted: Map<string, number>
  recalled: Set<string>
  /** Its calls that have run for a while. */
  calls: Map<string, { record: JobRecord; ended: PromiseWithResolvers<void> | undefined }>
  records: number
  /** Resolved when it has done what it was told, by number. */
  answers: Map<number, () => void>
  drained: (() => void) | undefined
}

export interface FrontWorkOptions {
  config: Config
  registry: Pick<Registry, 'all'>
  accounts: Pick<Accounts, 'authenticate'>
  grants: SlotGrants
  recorder: Pick<Recorder, 'record' | 'whenWritten'>
  credits: Omit<Credits, 'enter' | 'size'>
  tokenLimiter: Pick<TokenLimiter, 'used' | 'know'>
  metrics: Pick<Metrics, 'answered'>
  timings: Pick<Timings, 'record'>
  throughput: Pick<Throughput, 'meter'>
  /** The route of a path, as metrics name it. */
  routeAt: (path: string) => { method: string; path: string } | undefined
  log: Log
}

/**
 * Control's part in what fronts answer: tells them callers and models, grants them free slots, and takes in their records,
 * counts and times. `elsewhere` finds and cancels their calls.
 */
export function openFrontWork(options: FrontWorkOptions) {
  const { config, registry, accounts, grants, recorder, credits, tokenLimiter, metrics, timings, throughput } = options
  const sessions = new Set<Session>()
  /** A front gets so much of the free slots at a time. */
  const part = 1 / (2 * config.gateway_processes)
  const counts = { requests: 0, messages: 0 }
  let numbers = 0
  let begun = 0
  /** Those who ask at the same time get the same answer. */
  let asking: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  let draining = false

  function giveBack(session: Session, engineId: string, slots: number, ranMs: number | null): void {
    const left = (session.granted.get(engineId) ?? 0) - slots
    if (left > 0) session.granted.set(engineId, left)
    else {
      session.granted.delete(engineId)
      session.recalled.delete(engineId)
    }
    grants.giveBack(engineId, slots, ranMs)
  }

  function recall(session: Session, engineId: string): void {
    if (session.recalled.has(engineId)) return
    session.recalled.add(engineId)
    session.send({ kind: 'recall', engineId })
  }

  /** A request waits: every front gives back what it does not use, because the memory of any idle engine may be needed. */
  function recallAll(): void {
    for (const session of sessions) for (const engineId of session.granted.keys()) recall(session, engineId)
  }
  grants.onWait(recallAll)

  function look(): void {
    for (const session of sessions)
      for (const engineId of session.granted.keys()) {
        const state = grants.stateOf(engineId)
        if (state === 'recall') recall(session, engineId)
        if (state !== 'ended') continue
        session.granted.delete(engineId)
        session.recalled.delete(engineId)
        session.send({ kind: 'ended', engineId })
      }
  }
  const timer = setInterval(look, lookMs).unref()
  const ticking = setInterval(() => credits.tick(), tickMs).unref()

  function grant(session: Session, modelId: string): void {
    if (draining) return
    const granted = grants.take(modelId, part)
    if (!granted) return
    const { engineId } = granted.engine
    session.granted.set(engineId, (session.granted.get(engineId) ?? 0) + granted.slots)
    session.recalled.delete(engineId)
    session.send({ kind: 'grant', ...granted })
  }

  function tellCaller(session: Session, secret: string): void {
    try {
      const caller = accounts.authenticate(secret)
      const { expiresAt, limits } = caller.token
      const minute = limits.allowedHours === null ? Infinity : Math.floor(Date.now() / 60_000 + 1) * 60_000
      const until = Math.min(expiresAt ?? Infinity, minute)
      tokenLimiter.know(caller)
      session.send({ kind: 'caller', secret, caller, until })
    } catch {
      session.send({ kind: 'caller', secret, caller: null, until: 0 })
    }
  }

  function finished(session: Session, record: FinishedJob, tokenIds: readonly string[] | undefined): void {
    const known = session.calls.get(record.id)
    session.calls.delete(record.id)
    const { inputTokens, outputTokens } = record.usage
    tokenLimiter.used(record.tokenId, inputTokens + outputTokens)
    recorder.record(record)
    credits.settle(session.id, record.id, tokenIds ? { ...record, tokenIds } : record)
    known?.ended?.resolve()
  }

  function work(session: Session, done: FrontWork): void {
    const { records, began = [], answered = [], timings: times = [], tokens = [], returned = [] } = done
    for (const record of began) session.calls.set(record.id, { record, ended: undefined })
    for (const id of done.passedOn ?? []) {
      session.calls.get(id)?.ended?.resolve()
      session.calls.delete(id)
    }
    for (let at = 0; at < returned.length; at += 3)
      giveBack(session, returned[at] as string, returned[at + 1] as number, returned[at + 2] as number | null)
    if (records) {
      let priced = 0
      for (const record of records) finished(session, record, record.cost > 0 ? done.tokenIds?.[priced++] : undefined)
      session.records += records.length
      const upTo = session.records
      recorder.whenWritten(() => session.send({ kind: 'stored', records: upTo }))
    }
    if (done.credits) credits.apply(session.id, done.credits)
    counts.requests += answered.length / 3
    for (let at = 0; at < answered.length; at += 3) {
      const route = options.routeAt(answered[at] as string)
      if (route) metrics.answered(route, answered[at + 1] as number, answered[at + 2] as number)
    }
    for (let at = 0; at < times.length; at += 3)
      timings.record(times[at] as Timing, times[at + 1] as string, times[at + 2] as number)
    for (let at = 0; at < tokens.length; at += 3) {
      const meter = throughput.meter(tokens[at] as string)
      meter.input += tokens[at + 1] as number
      meter.output += tokens[at + 2] as number
    }
    for (const secret of done.secrets ?? []) tellCaller(session, secret)
    for (const modelId of done.lacking ?? []) grant(session, modelId)
  }

  function ended(session: Session): void {
    sessions.delete(session)
    for (const [engineId, slots] of session.granted) grants.giveBack(engineId, slots, null)
    for (const resolve of session.answers.values()) resolve()
    session.drained?.()
    const failure = new Failure('worker_error', 'Its gateway process ended. Send the request again.')
    for (const { record, ended: follower } of session.calls.values()) {
      recorder.record({
        ...pick(record, ...callFacts),
        status: 'failed',
        error: jobErrorOf(failure, 1),
        usage: { ...noUsage },
        cost: 0,
        finishedAt: Date.now(),
      })
      follower?.resolve()
    }
    credits.gone(session.id)
    if (draining && sessions.size === 0) clearInterval(ticking)
  }

  function* callsOf(organizationId: string) {
    for (const session of sessions)
      for (const call of session.calls.values())
        if (call.record.organizationId === organizationId) yield { session, call }
  }
  function callOf(organizationId: string, id: string) {
    for (const session of sessions) {
      const call = session.calls.get(id)
      if (call?.record.organizationId === organizationId) return { session, call }
    }
    return undefined
  }

  /**
   * Resolves when all fronts have done this. One that does not answer in time is ended if it must `forget` or `yield`; a report
   * of it is not waited for any longer.
   */
  async function askAll(kind: 'forget' | 'report' | 'yield'): Promise<void> {
    const number = ++numbers
    await Promise.all(
      [...sessions].map(async session => {
        const answered = new Promise<void>(resolve => session.answers.set(number, resolve))
        const late = setTimeout(() => {
          // Control itself may have stood still: what has arrived meanwhile is read first.
          setImmediate(() => {
            if (!session.answers.has(number)) return
            if (kind === 'report') session.answers.get(number)!()
            else session.kill()
          })
        }, answerMs)
        session.send({ kind, number })
        await answered
        clearTimeout(late)
        session.answers.delete(number)
      }),
    )
  }

  const elsewhere: CallsElsewhere = {
    known() {
      next ??= asking.then(() => {
        next = undefined
        return (asking = askAll('report'))
      })
      return next
    },
    find: (organizationId, id) => callOf(organizationId, id)?.call.record,
    ended(organizationId, id) {
      const call = callOf(organizationId, id)?.call
      return call && (call.ended ??= Promise.withResolvers<void>()).promise
    },
    cancel(organizationId, id, reason) {
      const own = callOf(organizationId, id)
      own?.session.send({ kind: 'cancel', ids: [id], message: reason.message })
      return own !== undefined
    },
    cancelAll(organizationId, reason) {
      const own = [...callsOf(organizationId)]
      for (const { session, call } of own)
        session.send({ kind: 'cancel', ids: [call.record.id], message: reason.message })
      return own.length
    },
    runningOf: organizationId => [...callsOf(organizationId)].length,
  }

  return {
    elsewhere,
    /** Requests that fronts have answered themselves, and messages with them. */
    counts: (): { requests: number; messages: number } => ({ ...counts }),

    /** A front accepts connections. */
    begin(link: FrontLink): FrontSession {
      const session: Session = {
        id: `front ${++begun}`,
        kill: link.kill,
        send(message) {
          counts.messages++
          link.send(message)
        },
        granted: new Map(),
        recalled: new Set(),
        calls: new Map(),
        records: 0,
        answers: new Map(),
        drained: undefined,
      }
      sessions.add(session)
      credits.join(session.id)
      session.send({ kind: 'serve', config: { ...config, models: [] }, models: registry.all() })
      return {
        received(message) {
          counts.messages++
          if (message.kind === 'work') work(session, message)
          else if (message.kind === 'fault') grants.report(message.engineId, message.fault)
          else if (message.kind === 'drained') session.drained?.()
          else if (message.kind === 'done') session.answers.get(message.number)?.()
        },
        ended: () => ended(session),
      }
    },

    /** There is something to tell a front of its credits. All of it is one message, at the end of this turn. */
    creditsChanged(frontId: string): void {
      queueMicrotask(() => {
        const message = credits.pending(frontId)
        if (!message) return
        for (const session of sessions) if (session.id === frontId) session.send({ kind: 'credits', credits: message })
      })
    },

    /** Resolves when no front knows any caller. One that does not answer is ended. */
    forgetCallers: (): Promise<void> => askAll('forget'),

    /** The models have changed. */
    modelsChanged(): void {
      for (const session of sessions) session.send({ kind: 'models', models: registry.all() })
      recallAll()
    },

    /**
     * Another server takes the place of this one: fronts answer nothing more themselves, and keep of slots and limits only what
     * their running calls use. Resolves when they have told of everything before; one that does not answer is ended.
     */
    async yield(): Promise<void> {
      draining = true
      credits.stop()
      recallAll()
      // What is recalled is sent at the end of this turn, and so before the next message.
      await Promise.resolve()
      await askAll('yield')
    },

    /** Fronts answer nothing more themselves. Resolves when they have sent their records, or have ended. */
    async drain(deadlineMs: number): Promise<void> {
      draining = true
      await Promise.all(
        [...sessions].map(session => {
          const drained = new Promise<void>(resolve => (session.drained = resolve))
          session.send({ kind: 'drain', deadlineMs })
          const late = setTimeout(() => session.drained?.(), deadlineMs + 2_000)
          return drained.then(() => clearTimeout(late))
        }),
      )
      clearInterval(timer)
      if (sessions.size === 0) clearInterval(ticking)
    },
  }
}
export type FrontWorkOwner = ReturnType<typeof openFrontWork>
