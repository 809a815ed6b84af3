import { setTimeout as delay } from 'node:timers/promises'
import { openDueWork } from '../due-work.ts'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { DueDelivery, NewDelivery, Store } from '../store/store.ts'
import { openSweep } from '../sweep.ts'
import { messageText } from './message.ts'
import { type AttemptReply, decide } from './retry.ts'

export interface DeliveriesOptions {
  store: Pick<Store, 'webhooks' | 'onCommitted'>
  /** Makes the body of a delivery: the whole message. */
  render: (delivery: NewDelivery) => Promise<string>
  /** Signs and sends one message. Never rejects. */
  send: (delivery: DueDelivery, signal: AbortSignal) => Promise<AttemptReply>
  /** Milliseconds between the attempts: one attempt more than delays. */
  delays: readonly number[]
  /** Requests at a time: in total, and to one endpoint or host. */
  parallel: number
  parallelPerTarget: number
  /** How long an ended delivery is kept, milliseconds. */
  retentionMs: number
  log: Log
  clock?: { now(): number }
  random?: () => number
  /** How often to look for work that no commit has announced, milliseconds. */
  tickMs?: number
}

/** What was sent since the start of the server. */
export interface DeliveryTotals {
  delivered: number
  failed: number
  dead: number
}

const renderedAtOnce = 32
const targetsAtOnce = 64
const sweptAtOnce = 200
/** Milliseconds that running attempts have to end when the server stops. */
const closeGraceMs = 1_000
/** Milliseconds before an outcome is written again that the store could not take. */
const settleAgainMs = 1_000

/**
 * Sends webhook deliveries: makes their bodies soon after the commit of their events, sends those that are due, and
 * records each attempt. A delivery whose success was recorded is not sent again; one whose attempt was cut off is. The
 * store decides the order; this loop bounds how many are sent at a time.
 */
export function openDeliveries(options: DeliveriesOptions) {
  const { store, render, send, delays, parallel, parallelPerTarget, retentionMs, log } = options
  const { clock = { now: Date.now }, random = Math.random, tickMs = 10_000 } = options
  const { webhooks } = store
  /** Numbers of the deliveries that are being sent, by target. */
  const inFlight = new Map<string, Set<number>>()
  const attempts = new Set<Promise<void>>()
  const totals: DeliveryTotals = { delivered: 0, failed: 0, dead: 0 }
  const stopped = new AbortController()
  let closed = false
  const passes = openDueWork({ work: pass, clock })
  /** The target after which the next pass begins, so that many targets take turns. */
  let lastTarget = ''

  store.onCommitted(({ deliveries }) => {
    if (deliveries.length > 0) wake()
  })
  const tick = setInterval(wake, tickMs).unref()
  const sweep = openSweep({
    sweep: () => webhooks.sweep(clock.now() - retentionMs, clock.now(), sweptAtOnce),
    pauseMs: () => 20,
    log,
    failed: 'Old webhook deliveries could not be removed',
  })
  wake()

  /** Looks for work now, or after the pass that runs. */
  function wake(): void {
    void passes.check()
  }

  async function pass(): Promise<void> {
    try {
      await makeBodies()
      await sendDue()
    } catch (thrown) {
      if (!Failure.from(thrown).retryable) log.error('Webhook deliveries could not be processed', {}, thrown)
    }
  }

  async function makeBodies(): Promise<void> {
    for (;;) {
      const found = await webhooks.withoutBody(renderedAtOnce)
      if (found.length === 0 || closed) return
      const bodies: string[] = []
      for (const delivery of found) {
        bodies.push(await render(delivery).catch(thrown => shortBody(delivery, thrown)))
        // Other work of the event loop goes on between two bodies.
        await new Promise(resolve => setImmediate(resolve))
      }
      await keepBodies(found, bodies)
      if (found.length < renderedAtOnce) return
      await sendDue()
    }
  }

  /** Stores bodies; after a refusal each alone, and the short one in place of a body that is refused alone. */
  async function keepBodies(found: readonly NewDelivery[], bodies: readonly string[]): Promise<void> {
    try {
      await webhooks.keepBodies(found.map(({ number }, at) => ({ number, body: bodies[at]! })))
    } catch (thrown) {
      // What may pass, such as a full disk, is waited for.
      if (Failure.from(thrown).retryable) throw thrown
      const [delivery] = found
      if (found.length > 1) for (const [at, one] of found.entries()) await keepBodies([one], [bodies[at]!])
      else if (delivery) await keepShortBody(delivery, thrown)
    }
  }

  async function keepShortBody(delivery: NewDelivery, refusal: unknown): Promise<void> {
    try {
      await webhooks.keepBodies([{ number: delivery.number, body: shortBody(delivery, refusal) }])
    } catch (thrown) {
      if (Failure.from(thrown).retryable) throw thrown
      log.error('A webhook cannot be sent, because the store refuses its body', { delivery: delivery.id }, thrown)
      await giveUp(delivery, 'Its body cannot be stored.')
    }
  }

  /** Ends a delivery that can never be sent, so that it holds up no others. */
  async function giveUp({ number }: NewDelivery, error: string): Promise<void> {
    const nothing = { statusCode: null, durationMs: 0, responseBody: null, nextAt: null, gone: false }
    await settle({ number, at: clock.now(), outcome: 'dead', error: `This could not be sent: ${error}`, ...nothing })
    totals.dead += 1
  }

  /** The message about an object that cannot be shown, such as one that was removed meanwhile. */
  function shortBody({ event, type, at, subject, id }: NewDelivery, thrown: unknown): string {
    const { code } = Failure.from(thrown)
    if (code !== 'output_expired' && code !== 'not_found')
      log.error('The body of a webhook could not be made', { delivery: id, type }, thrown)
    const data = JSON.stringify({ id: subject.executionId ?? subject.jobId, node_id: subject.nodeId ?? undefined })
    return messageText({ id: `evt_${event}`, type, at, data })
  }

  async function sendDue(): Promise<void> {
    const start = lastTarget
    const now = clock.now()
    const next = Math.min(
      await sendBetween(start, undefined, now),
      start === '' ? Number.POSITIVE_INFINITY : await sendBetween('', start, now),
    )
    // Otherwise the end of any attempt is the next occasion.
    if (attempts.size >= parallel) return
    lastTarget = ''
    if (next < Number.POSITIVE_INFINITY) passes.at(next)
  }

  /** Sends to the targets after `after`, up to `until`. Returns when the next delivery to one of them becomes due. */
  async function sendBetween(after: string, until: string | undefined, now: number): Promise<number> {
    let next = Number.POSITIVE_INFINITY
    for (let position = after; ; ) {
      const targets = await webhooks.targets(position, targetsAtOnce)
      for (const { target, nextAt, state } of targets) {
        if (closed || attempts.size >= parallel || (until !== undefined && target > until)) return next
        lastTarget = target
        if (state !== 'open') continue
        if (nextAt > now) next = Math.min(next, nextAt)
        else await sendTo(target, now)
      }
      if (targets.length < targetsAtOnce) return next
      position = targets.at(-1)!.target
    }
  }

  async function sendTo(target: string, now: number): Promise<void> {
    const busy = inFlight.get(target)
    const free = Math.min(parallelPerTarget - (busy?.size ?? 0), parallel - attempts.size)
    if (free <= 0) return
    // Those that are being sent are among the due ones, and may be the first.
    const due = await webhooks.due(target, now, free + (busy?.size ?? 0))
    for (const delivery of due.filter(({ number }) => !inFlight.get(target)?.has(number)).slice(0, free))
      begin(target, delivery)
  }

  function begin(target: string, delivery: DueDelivery): void {
    const numbers = inFlight.get(target) ?? new Set()
    inFlight.set(target, numbers.add(delivery.number))
    const done = attempt(delivery)
      .then(
        () => void numbers.delete(delivery.number),
        // Stays among those in flight: sent again without end, if its outcome cannot be recorded, it would do harm.
        (thrown: unknown) => log.error('A webhook delivery could not be recorded', { delivery: delivery.id }, thrown),
      )
      .finally(() => {
        attempts.delete(done)
        // A later attempt may have made another set meanwhile.
        if (numbers.size === 0 && inFlight.get(target) === numbers) inFlight.delete(target)
        wake()
      })
    attempts.add(done)
  }

  async function attempt(delivery: DueDelivery): Promise<void> {
    const reply = await send(delivery, stopped.signal)
    // Cut off by the stop of the server: it is sent again after the next start.
    if (stopped.signal.aborted && reply.statusCode === null) return
    const at = clock.now()
    const attempted = delivery.attempts + 1
    const decision = decide(reply, { attempts: attempted, delays, now: at, random: random() })
    const { outcome } = decision
    const { statusCode, durationMs } = reply
    await settle({
      nextAt: null,
      error: null,
      gone: false,
      ...decision,
      number: delivery.number,
      at,
      statusCode,
      durationMs,
      responseBody: statusCode === null ? null : reply.body,
    })
    totals[outcome === 'retry' ? 'failed' : outcome] += 1
    if (outcome !== 'dead') return
    const { id, endpointId: endpoint } = delivery
    const facts = { delivery: id, endpoint, attempts: attempted, why: decision.error }
    log.warn('A webhook was not delivered and is not sent again', facts)
  }

  /** Records an outcome; while the disk is full, until it can: a delivered message must not be sent again. */
  async function settle(outcome: Parameters<typeof webhooks.settle>[0]): Promise<void> {
    for (;;)
      try {
        return void (await webhooks.settle(outcome))
      } catch (thrown) {
        const { code, retryable } = Failure.from(thrown)
        if (!retryable || code === 'shutting_down') throw thrown
        await delay(settleAgainMs, undefined, { ref: false })
      }
  }

  return {
    wake,
    totals: (): DeliveryTotals => ({ ...totals }),
    /** Begins no more attempts, and cuts off those that do not end soon. */
    async close(): Promise<void> {
      closed = true
      clearInterval(tick)
      await Promise.all([passes.close(), sweep.close()])
      const grace = delay(closeGraceMs, undefined, { ref: false })
      await Promise.race([Promise.allSettled(attempts), grace])
      stopped.abort()
      await Promise.allSettled(attempts)
    },
  }
}
