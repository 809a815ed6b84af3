import { openFrontLimits } from '../../core/admission/front-limits.ts'
import { Failure } from '../../core/failure.ts'
import { runningRecord } from '../../core/jobs/call.ts'
import { openFrontCalls } from '../../core/jobs/front-calls.ts'
import type { Log } from '../../core/log.ts'
import type { Config } from '../../core/models/config.ts'
import type { Model } from '../../core/models/model.ts'
import type { Registry } from '../../core/models/registry.ts'
import type { SlotGrants } from '../../core/models/slot-grants.ts'
import { received } from '../../core/store/sqlite/sent-failure.ts'
import { openFrontAccounts } from './front-accounts.ts'
import { type LocalWayOptions, openLocalWay } from './local-way.ts'
import type { FromFront, ToFront } from './messages.ts'
import { openOutbox } from './outbox.ts'
import { type FrontEngines, openSlotWaits } from './slot-waits.ts'

/** Milliseconds between two looks at calls that run long and slots that nobody uses. */
const lookMs = 100

/** Milliseconds between two messages with tokens that running streams have counted, if no other takes them along. */
const countMs = 500

/** Milliseconds between two looks at what control is to be told of limits. */
const creditMs = 50

/** Opens what the server does not know: engines, models and threads. */
export interface FrontParts {
  openRegistry(config: Config, models: readonly Model[]): Registry
  openEngines(options: {
    find: (modelId: string) => Model | undefined
    returned: (engineId: string, slots: number, ranMs: number | null) => void
    report: SlotGrants['report']
    progressed: SlotGrants['progressed']
    lacking: (modelId: string) => void
    log: Log
  }): FrontEngines
  openCpu(): unknown
}

type Serve = Extract<ToFront, { kind: 'serve' }>

/** Opens what answers requests in a front, once control has said how. Takes in the messages of control about it. */
export function openLocalWork({
  config,
  models,
  parts,
  secure,
  forward,
  send,
  log,
}: Pick<Serve, 'config' | 'models'> &
  Pick<LocalWayOptions, 'secure' | 'forward' | 'log'> & { parts: FrontParts; send: (message: FromFront) => void }) {
  const registry = parts.openRegistry(config, models)
  const limits = openFrontLimits()
  const outbox = openOutbox({
    pending: limits.pending,
    send: work => send({ kind: 'work', ...work }),
    collect: ({ tokens }) => way.addTokens(tokens),
  })
  const accounts = openFrontAccounts({ ask: outbox.secret })
  const engines = parts.openEngines({
    find: id => registry.find(id),
    returned: outbox.returned,
    report: (engineId, fault) => send({ kind: 'fault', engineId, fault }),
    progressed: (engineId, agoMs) => send({ kind: 'progress', engineId, agoMs }),
    lacking: outbox.lacking,
    log,
  })
  const waits = openSlotWaits({ outbox, engines })
  const calls = openFrontCalls({
    take: engines.take,
    wait: waits.wait,
    reasonOf: waits.reasonOf,
    ran: outbox.ran,
    record: outbox.record,
    passedOn: outbox.passedOn,
    spend: limits.spend,
    used: (tokenId, tokens) => limits.tokenLimiter.used(tokenId, tokens),
    log,
  })
  const way = openLocalWay({
    config,
    secure,
    processes: config.gateway_processes + 1,
    registry,
    accounts,
    accountLimits: limits,
    calls,
    cpu: parts.openCpu(),
    outbox,
    forward,
    log,
  })
  /** Tells control of the calls that have begun before this time. */
  function tell(before: number): void {
    for (const call of calls.running()) {
      if (call.startedAt !== null && call.startedAt <= before && !outbox.knows(call.id))
        outbox.began(runningRecord(call))
    }
  }
  const timer = setInterval(() => {
    engines.look()
    tell(Date.now() - lookMs)
  }, lookMs)
  // Streams count tokens all the time.
  const counting = setInterval(outbox.soon, countMs)
  const crediting = setInterval(() => {
    if (limits.size() > 0) outbox.flush()
  }, creditMs)

  /** Answers nothing more. Resolves when its requests have ended and control was told of them. */
  async function drain(deadlineMs: number): Promise<void> {
    await way.drain(deadlineMs)
    for (const each of [timer, counting, crediting]) clearInterval(each)
    outbox.flush()
  }

  return {
    takes: way.takes,
    answer: way.answer,
    drain,
    received(message: ToFront): void {
      if (message.kind === 'models') registry.replace(message.models, false)
      else if (message.kind === 'caller') accounts.learn(message.secret, message.caller, message.until)
      else if (message.kind === 'forget') {
        accounts.forget()
        send({ kind: 'done', number: message.number })
      } else if (message.kind === 'report') {
        tell(Infinity)
        outbox.flush(way.open())
        send({ kind: 'done', number: message.number })
      } else if (message.kind === 'grant') engines.granted(message.engine, message.slots)
      else if (message.kind === 'credits') {
        limits.apply(message.credits)
        // Requests wait in control for what is recalled.
        outbox.flush()
      } else if (message.kind === 'recall') engines.recall(message.engineId)
      else if (message.kind === 'unreachable') engines.unreachable(message.engineId, () => received(message.failure))
      else if (message.kind === 'ended')
        engines.ended(message.engineId, () => received(message.failure), message.slotsInUse)
      else if (message.kind === 'slots') waits.granted(message.slots)
      else if (message.kind === 'refused') waits.refused(message.refusals)
      else if (message.kind === 'waiting') waits.learnReasons(message.reasons)
      else if (message.kind === 'stored') outbox.stored(message.records)
      else if (message.kind === 'cancel') calls.cancel(message.ids, new Failure('cancelled', message.message))
      else if (message.kind === 'yield') {
        way.close()
        tell(Infinity)
        outbox.flush()
        send({ kind: 'done', number: message.number })
      } else if (message.kind === 'drain') void drain(message.deadlineMs).then(() => send({ kind: 'drained' }))
    },
  }
}
export type LocalWork = ReturnType<typeof openLocalWork>
