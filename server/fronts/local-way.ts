import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { openAdmission } from '../../core/admission/admission.ts'
import { openBodyMemory } from '../../core/admission/body-memory.ts'
import type { FrontLimits } from '../../core/admission/front-limits.ts'
import { isSmallBody, largeBytes } from '../../core/cpu/small-body.ts'
import { nothingContinued } from '../../core/dialects/responses/continuation.ts'
import type { RememberedResponse } from '../../core/dialects/responses/response-object.ts'
import { Failure } from '../../core/failure.ts'
import { newId } from '../../core/ids.ts'
import { type FrontCalls, passOn } from '../../core/jobs/front-calls.ts'
import type { Log } from '../../core/log.ts'
import type { Config } from '../../core/models/config.ts'
import type { Registry } from '../../core/models/registry.ts'
import { SwapSet } from '../../core/swap-set.ts'
import { openAccessWatch } from '../http/access/access-watch.ts'
import { credentialOf } from '../http/access/auth.ts'
import { hostFailure, hostRulesOf } from '../http/connection/host.ts'
import { openHttpApp } from '../http/http-app.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { answerFailure, endExchange, type HttpEvent, interrupt, runRoute } from '../http/run-route.ts'
import { openStreamLimits } from '../http/streams/stream-limits.ts'
import { openStreams } from '../http/streams/streams.ts'
import { openThroughput } from '../metrics/throughput.ts'
import { messageRoute } from '../surfaces/anthropic/routes.ts'
import { cohereRoutes } from '../surfaces/cohere/routes.ts'
import { falRoots } from '../surfaces/fal/addresses.ts'
import { type OllamaChatOwners, ollamaChatRoutes } from '../surfaces/ollama/generate.ts'
import { responseRoute } from '../surfaces/openai/responses/routes.ts'
import { scoringRoutes, textRoutes } from '../surfaces/openai/text.ts'
import type { FormState } from '../work/inference.ts'
import type { Tried } from './forwarded.ts'
import type { FrontAccounts } from './front-accounts.ts'
import type { FrontWork } from './messages.ts'
import type { Outbox } from './outbox.ts'

/** Headers with which a request needs what only control has, or that are checked there. */
const forControl = [
  'idempotency-key',
  'prefer',
  'expect',
  'x-region',
  'origin',
  'upgrade',
  'transfer-encoding',
  'content-encoding',
  'x-forwarded-host',
] as const

export interface LocalWayOptions {
  config: Config
  /** Whether clients use TLS. */
  secure: boolean
  /** Of this process: the part of the memory for bodies that is its own is one in so many. */
  processes: number
  registry: Registry
  accounts: FrontAccounts
  /** What control has granted of the limits of callers. */
  accountLimits: FrontLimits
  calls: FrontCalls
  cpu: unknown
  outbox: Pick<Outbox, 'answered' | 'timing' | 'isFull'>
  /** Passes a request on to control. */
  forward: (req: IncomingMessage, res: ServerResponse, tried?: Tried) => void
  log: Log
}

/** The state of a response that is not kept. What continues or is kept needs the store. */
const unstoredResponse = (): FormState => ({
  context: { id: newId('resp'), ...nothingContinued },
  check(remembered) {
    const { isStored, request } = remembered as RememberedResponse
    if (isStored || request.background) throw passOn
  },
})

/** What is in a large body with images, in any form. */
const namesImages = ['"image', '_image"']

type RunOwners = Parameters<typeof runRoute>[2]['owners'] & OllamaChatOwners

/**
 * Answers requests for text in a front, with the code and the rules of control, where this front has a free slot, knows
 * the caller and holds enough of its limits. What it cannot answer is passed on before a byte was sent, whatever the reason:
 * so control alone refuses.
 */
export function openLocalWay(options: LocalWayOptions) {
  const { config, secure, processes, registry, accounts, accountLimits, calls, cpu, outbox, forward, log } = options
  const { limits } = config
  const exchanges = new SwapSet<ClientExchange>()
  const streams = openStreams({ pingMs: limits.stream_ping, writeDeadlineMs: limits.write_deadline })
  const throughput = openThroughput()
  const { limiter, tokenLimiter, spend } = accountLimits
  const hosts = hostRulesOf(config, secure)
  /** What was read of a request, for control. */
  const bodies = new WeakMap<IncomingMessage, Buffer>()
  const passedOn = new WeakSet<HttpEvent>()
  /** By what takes a request out of the limits: what also takes back that it was counted, as control counts it again. */
  const undos = new WeakMap<() => void, () => void>()
  let isOpen = falRoots(config.allowed_hosts).size === 0
  let idle: (() => void) | undefined

  const mustPassOn = () => {
    throw passOn
  }
  const admission = openAdmission({
    registry,
    tokenLimiter,
    spend: { ...spend, spenderOf: mustPassOn },
    localOnlyOf: mustPassOn,
    bodies: openBodyMemory(Math.ceil(limits.held_bodies / processes)),
    room: {
      records: () => {
        if (outbox.isFull()) throw passOn
      },
      queue: mustPassOn,
      machine() {},
    },
  })
  // Text needs no more of them: what it would need besides is passed on before.
  const owners = {
    config,
    accounts,
    access: openAccessWatch({ accounts }),
    admission,
    cpu,
    jobs: { calls },
    limiter: {
      ...limiter,
      enter(...check: Parameters<typeof limiter.enter>) {
        const entry = limiter.enter(...check)
        undos.set(entry.leave, entry.undo)
        return entry
      },
    },
    tokenLimiter,
    registry,
    streamLimits: openStreamLimits(limits),
    streams,
    throughput,
    metrics: {
      answered: ({ path }: { path: string }, status: number, ms: number) => outbox.answered(path, status, ms),
    },
    timings: { record: outbox.timing, waited() {} },
    steady: { now: Date.now },
    wrongTokens: { blockedFor: () => 0, count() {} },
    fleet: { load: mustPassOn, unload: mustPassOn },
    bodyRead({ req }: ClientExchange, body: Buffer) {
      bodies.set(req, body)
      if (isSmallBody(body)) return
      // They must be fetched or decoded, which control does.
      if (namesImages.some(name => body.includes(name))) throw passOn
      // A thread takes the bytes, which control may need.
      bodies.set(req, Buffer.from(body))
    },
  } as unknown as RunOwners

  const table = [
    ...textRoutes(owners),
    ...scoringRoutes(owners),
    ...cohereRoutes(owners),
    messageRoute(owners),
    ...ollamaChatRoutes(owners),
    responseRoute(owners, () => Promise.resolve(unstoredResponse())),
  ]
  const paths = new Set<string>(table.flatMap(({ path, aliases = [] }) => [path, ...aliases]))

  function release({ exchange }: HttpEvent): void {
    if (!exchange) return
    exchange.releaseBody()
    const { leaveLimits } = exchange
    ;(undos.get(leaveLimits) ?? leaveLimits)()
    exchanges.delete(exchange)
  }

  const app = openHttpApp<HttpEvent>({
    routes: table,
    begin: (req, res) => ({ req, res, params: {}, exchange: undefined }),
    handle: (route, event) => runRoute(route, event, { owners, exchanges }),
    explain: () => undefined,
    onError(thrown, event) {
      const { req, res } = event
      if (calls.isRecorded(thrown) || res.headersSent)
        answerFailure(thrown, event, { log, errorsBelow: () => undefined })
      else {
        passedOn.add(event)
        if (!res.destroyed) forward(req, res, { body: bodies.get(req), engineEnd: calls.engineEndOf(thrown) })
      }
    },
    end(event) {
      if (passedOn.has(event)) release(event)
      else endExchange(event, { owners, exchanges })
      if (exchanges.size === 0) idle?.()
    },
  })

  const counted = new Map<string, { input: number; output: number }>()

  return {
    /** Whether to try a request here. Cheap. */
    takes(this: void, req: IncomingMessage): boolean {
      const { method, url, headers } = req
      if (!isOpen || method !== 'POST' || !paths.has(url!)) return false
      const length = Number(headers['content-length'])
      if (!(length > 0 && length <= largeBytes) || credentialOf(headers) === undefined) return false
      for (const name of forControl) if (headers[name] !== undefined) return false
      return hostFailure(req, hosts) === undefined
    },
    answer: (req: IncomingMessage, res: ServerResponse): void => app.answer(req, res),

    /** How many requests are being answered here. */
    open: (): number => exchanges.size,

    /** Adds the tokens since the last call. */
    addTokens(tokens: NonNullable<FrontWork['tokens']>): void {
      for (const [model, { input, output }] of throughput.totals()) {
        const before = counted.get(model) ?? { input: 0, output: 0 }
        if (input === before.input && output === before.output) continue
        tokens.push(model, input - before.input, output - before.output)
        counted.set(model, { input, output })
      }
    },

    /** Answers nothing more; its requests go on. */
    close: (): void => void (isOpen = false),

    /** Answers nothing more. Resolves when its requests have ended, which are interrupted after the deadline. */
    async drain(deadlineMs: number): Promise<void> {
      isOpen = false
      const ended = new Promise<void>(resolve => (idle = resolve))
      if (exchanges.size > 0 && !(await Promise.race([ended.then(() => true), delay(deadlineMs, false)]))) {
        const interrupted = new Failure(
          'shutting_down',
          'The server is stopping and could not finish this request. Send it again in 5 s.',
          { retryAfterMs: 5_000 },
        )
        streams.interruptAll()
        for (const exchange of exchanges) interrupt(exchange, interrupted, log)
        await Promise.race([ended, delay(1_000)])
      }
      throughput.close()
    },
  }
}
export type LocalWay = ReturnType<typeof openLocalWay>
