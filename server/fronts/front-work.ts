import type { Accounts } from '../../core/accounts/accounts.ts'
import type { TokenLimiter } from '../../core/accounts/token-limiter.ts'
import type { Credits } from '../../core/admission/credits.ts'
import { Failure } from '../../core/failure.ts'
import { runningRecord } from '../../core/jobs/call.ts'
import type { Recorder } from '../../core/jobs/recorder.ts'
import { requestedCall } from '../../core/jobs/slot-requests.ts'
import type { Log } from '../../core/log.ts'
import { pick } from '../../core/members.ts'
import type { Config } from '../../core/models/config.ts'
import type { Registry } from '../../core/models/registry.ts'
import type { SlotGrants } from '../../core/models/slot-grants.ts'
import type { CallsText } from '../../core/store/ledger-rows.ts'
import { sendable } from '../../core/store/sqlite/sent-failure.ts'
import { type JobRecord, jobErrorOf } from '../../core/store/store.ts'
import { noUsage } from '../../core/usage.ts'
import type { Metrics } from '../metrics/metrics.ts'
import type { Throughput } from '../metrics/throughput.ts'
import type { Timings } from '../metrics/timings.ts'
import { callsInFronts, type FrontLink, type FrontSession, type Session } from './calls-in-fronts.ts'
import { type LentSlotsOptions, openLentSlots } from './lent-slots.ts'
import type { FrontWork, ToFront } from './messages.ts'

/** Milliseconds between two looks at the engines of granted slots. */
const lookMs = 100
/** Milliseconds between two looks at requests that wait for credits, and between two words about why calls wait. */
const [tickMs, reasonMs] = [250, 1_000]
/** Milliseconds in which a front must do what control waits for. */
const answerMs = 2_000

/** A front is told each time that so many of its records are stored: far fewer than it may have unstored. */
const tellStoredEvery = 2_500

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

export interface FrontWorkOptions extends LentSlotsOptions {
  config: Config
  registry: Pick<Registry, 'all'>
  accounts: Pick<Accounts, 'authenticate' | 'forgetVerified'>
  /** Calls this after changes of accounts by other processes, until the function that it returns is called. */
  followAccounts: (changed: () => Promise<void>) => () => void
  grants: SlotGrants
  recorder: Pick<Recorder, 'record' | 'recordText' | 'whenWritten'>
  credits: Omit<Credits, 'enter' | 'size'>
  tokenLimiter: Pick<TokenLimiter, 'used' | 'know'>
  metrics: Pick<Metrics, 'answered'>
  timings: Pick<Timings, 'record' | 'waited'>
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
  let draining = false

  function giveBack(session: Session, engineId: string, slots: number, ranMs: number | null): void {
    const left = (session.granted.get(engineId) ?? 0) - slots
    if (left > 0) session.granted.set(engineId, left)
    else forgetSlots(session, engineId)
    grants.giveBack(engineId, slots, ranMs)
  }

  function forgetSlots(session: Session, engineId: string): void {
    session.granted.delete(engineId)
    session.recalled.delete(engineId)
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

  grants.onFailed((engineId, thrown, hasEnded, slotsInUse) => {
    const failure = sendable(thrown)
    for (const session of sessions) {
      if (!session.granted.has(engineId)) continue
      if (hasEnded) {
        forgetSlots(session, engineId)
        session.send({ kind: 'ended', engineId, failure, slotsInUse })
      } else {
        session.recalled.add(engineId)
        session.send({ kind: 'unreachable', engineId, failure })
      }
    }
  })

  function look(): void {
    for (const session of sessions)
      for (const engineId of session.granted.keys()) if (!grants.mayStay(engineId)) recall(session, engineId)
  }
  const timer = setInterval(look, lookMs).unref()
  const ticking = setInterval(() => credits.tick(), tickMs).unref()
  const explaining = setInterval(() => {
    for (const { slots } of sessions) slots.tellReasons()
  }, reasonMs).unref()

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

  function record(session: Session, records: CallsText): void {
    recorder.recordText(records)
    session.records += records.calls
    if (session.records - session.toldStored < tellStoredEvery) return
    const upTo = (session.toldStored = session.records)
    recorder.whenWritten(() => session.send({ kind: 'stored', records: upTo }))
  }

  function work(session: Session, done: FrontWork): void {
    const { records, began = [], answered = [], timings: times = [], tokens = [], returned = [] } = done
    for (const one of began)
      session.calls.set(one.id, { organizationId: one.organizationId, record: () => one, ended: undefined })
    const { ran = [], wanted = [], open = session.open } = done
    session.open = open
    for (let at = 0; at < ran.length; at += 3)
      session.slots.ran(ran[at] as string, ran[at + 1] as number, ran[at + 2] === 1)
    for (const id of done.withdrawn ?? []) session.slots.withdraw(id)
    for (let at = 0; at < returned.length; at += 3)
      giveBack(session, returned[at] as string, returned[at + 1] as number, returned[at + 2] as number | null)
    if (records) record(session, records)
    for (const use of done.uses ?? []) {
      tokenLimiter.used(use.tokenId, use.tokens)
      // Control holds nothing for the calls of a front.
      if (use.cost > 0) credits.settle(session.id, session.id, use)
    }
    for (const id of done.ended ?? []) {
      session.calls.get(id)?.ended?.resolve()
      session.calls.delete(id)
    }
    if (done.credits) credits.apply(session.id, done.credits)
    for (const { path, status, ms } of answered) {
      counts.requests += ms.length
      const route = options.routeAt(path)
      if (route) for (const one of ms) metrics.answered(route, status, one)
    }
    for (const { kind, modelId, ms } of times) for (const one of ms) timings.record(kind, modelId, one)
    for (let at = 0; at < tokens.length; at += 3) {
      const meter = throughput.meter(tokens[at] as string)
      meter.input += tokens[at + 1] as number
      meter.output += tokens[at + 2] as number
    }
    for (const secret of done.secrets ?? []) tellCaller(session, secret)
    for (const request of wanted) {
      const call = requestedCall(request)
      const { organizationId } = call
      session.calls.set(call.id, { organizationId, record: () => runningRecord(call), ended: undefined })
      session.slots.want(call, request.prompt)
    }
    for (const modelId of done.lacking ?? []) grant(session, modelId)
  }

  function ended(session: Session): void {
    sessions.delete(session)
    session.slots.close()
    for (const [engineId, slots] of session.granted) grants.giveBack(engineId, slots, null)
    for (const resolve of session.answers.values()) resolve()
    session.drained?.()
    const failure = new Failure('worker_error', 'Its gateway process ended. Send the request again.')
    for (const { record, ended: follower } of session.calls.values()) {
      recorder.record({
        ...pick(record(), ...callFacts),
        status: 'failed',
        error: jobErrorOf(failure, 1),
        usage: { ...noUsage },
        cost: 0,
        finishedAt: Date.now(),
      })
      follower?.resolve()
    }
    credits.gone(session.id)
    if (draining && sessions.size === 0) stop()
  }

  const unfollow = options.followAccounts(() => accounts.forgetVerified())

  function stop(): void {
    unfollow()
    clearInterval(ticking)
    clearInterval(explaining)
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

  const elsewhere = callsInFronts(sessions, () => askAll('report'))

  return {
    elsewhere,
    /** Requests that fronts have answered themselves, and messages with them. */
    counts: (): { requests: number; messages: number } => ({ ...counts }),

    /** A front accepts connections. */
    begin(link: FrontLink): FrontSession {
      const send = (message: ToFront) => {
        counts.messages++
        link.send(message)
      }
      const session: Session = {
        id: `front ${++begun}`,
        kill: link.kill,
        send,
        slots: openLentSlots(options, {
          send,
          lent(engineId, keeps) {
            session.granted.set(engineId, (session.granted.get(engineId) ?? 0) + 1)
            if (keeps) session.recalled.delete(engineId)
            else session.recalled.add(engineId)
          },
          refused(id) {
            session.calls.get(id)?.ended?.resolve()
            session.calls.delete(id)
          },
          isLeaving: () => draining,
        }),
        granted: new Map(),
        recalled: new Set(),
        calls: new Map(),
        records: 0,
        toldStored: 0,
        open: 0,
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
          else if (message.kind === 'progress') grants.progressed(message.engineId, message.agoMs)
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
      // Plans may have changed with them.
      void accounts.forgetVerified()
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
      if (sessions.size === 0) stop()
    },
  }
}
export type FrontWorkOwner = ReturnType<typeof openFrontWork>
