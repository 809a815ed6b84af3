import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import type { Spend } from '../../core/admission/spend.ts'
import type { Recorder } from '../../core/jobs/recorder.ts'
import type { Fleet } from '../../core/models/fleet.ts'
import type { SendCommand, Store } from '../../core/store/store.ts'
import type { Server } from '../../server/server.ts'
import { removeServerFile } from '../client/find-server.ts'
import { openControl } from '../takeover/control.ts'
import { type HandOver, type HandOverOptions, openHandOver } from '../takeover/hand-over.ts'
import { exitCodes } from '../terminal/exit-codes.ts'

/** How long work in the background may take to end before another server continues it, milliseconds. */
const quiesceMs = 2_000

/** How long the records of ended calls may take to be written before the store is handed over, milliseconds. */
const recordsMs = 2_000

type Closable = { close(): Promise<unknown> }

export interface ClosingOptions extends Pick<HandOverOptions, 'dataDir' | 'log' | 'before' | 'drainMs'> {
  server: Server
  store: Pick<Store, 'handOver' | 'recovery'> & Closable
  spend: Pick<Spend, 'handOver'>
  jobs: {
    recorder: Closable & Pick<Recorder, 'hold' | 'resume' | 'unwritten'>
    drain: (deadlineMs: number) => Promise<unknown>
    quiesce: (deadlineMs: number) => Promise<void>
    leave: () => Promise<void>
  }
  fleet: Pick<Fleet, 'close' | 'leave' | 'usedSlots' | 'unserved'>
  flushing: NodeJS.Timeout
  /** Stop at once. */
  timers: readonly { close: () => void }[]
  executions: { leave: () => void }
  /** Work in the background that starts jobs. */
  expansion: Closable
  background: readonly Closable[]
  webhooks: Closable
  caches: Closable
  /** Writes the uses of tokens and sessions. */
  flushUses: () => Promise<unknown>
  files: Closable
  cpu: Closable
  /** Called when everything is closed, with the exit code of the process. */
  closed: (exitCode: number) => void
}

/** Closes the server's parts in reverse order of opening, at its end and when another server takes its place. */
export function openClosing(options: ClosingOptions) {
  const { dataDir, server, store, spend, jobs, fleet, log, drainMs, flushUses } = options
  const { expansion, background, webhooks, caches, files, cpu } = options
  let closing: Promise<void> | undefined
  let takeover: HandOver | undefined
  /** Resolves when another server serves and this one has finished its requests. */
  const finishing = Promise.withResolvers<void>()

  const stopTimers = () => {
    clearInterval(options.flushing)
    for (const timer of options.timers) timer.close()
  }

  /** Runs every step even if an earlier one failed: data that is not written now is lost. */
  async function runSteps(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
    for (const step of steps)
      await step().catch((cause: unknown) => log.error('Closing a part of the server failed', {}, cause))
  }

  const closeRest = () =>
    runSteps([
      () => fleet.close(0),
      () => caches.close(),
      () => jobs.recorder.close(),
      flushUses,
      () => files.close(),
      () => cpu.close(),
      () => store.close(),
    ])

  async function close(): Promise<void> {
    if (takeover && !(await takeover.stop())) return finishing.promise
    log.info('Stopping', { running: server.running, drain_ms: drainMs })
    stopTimers()
    await runSteps([
      () => Promise.all([server.drain(drainMs), jobs.drain(drainMs), expansion.close()]),
      () => Promise.all(background.map(one => one.close())),
      () => webhooks.close(),
      closeRest,
    ])
    removeServerFile(dataDir)
    options.closed(0)
  }

  async function quiesce(): Promise<void> {
    stopTimers()
    const ended = Promise.allSettled([expansion, ...background, webhooks].map(one => one.close()))
    await Promise.all([jobs.quiesce(quiesceMs), Promise.race([ended, delay(quiesceMs, undefined, { ref: false })])])
  }

  async function leave(send: SendCommand): Promise<void> {
    await Promise.all([fleet.leave, jobs.leave, flushUses].map(step => runSteps([step])))
    options.executions.leave()
    // From here on records wait for the other server, which is told what those cost that are not written.
    await Promise.race([jobs.recorder.hold(), delay(recordsMs, undefined, { ref: false })])
    await store.handOver(send)
    // The recorder learns what was written before.
    await nextTurn()
    jobs.recorder.resume()
  }

  /** Answers the requests that wait, and writes the records of those that ran. The exit code lets a service start this server again. */
  async function failed(last: () => Promise<unknown>): Promise<void> {
    closing ??= finishing.promise
    await runSteps([() => server.drain(0), closeRest, last])
    removeServerFile(dataDir)
    // After the command that has asked for the take-over has its answer.
    void nextTurn().then(() => {
      options.closed(exitCodes.internal)
      finishing.resolve()
    })
  }

  return {
    /** Drains and closes everything, in reverse order of opening. A server that takes over meanwhile is stopped too. */
    close: (): Promise<void> => (closing ??= close()),
    /** Opens what lets another process take the place of this server, which was started like `own`. */
    openTakeover: (own: HandOverOptions['own']) => {
      takeover = openHandOver({
        dataDir,
        own,
        server,
        store,
        spend: { handOver: tell => spend.handOver(tell, jobs.recorder.unwritten()) },
        usedSlots: fleet.usedSlots,
        unserved: fleet.unserved,
        log,
        before: options.before,
        drainMs,
        quiesce,
        leave,
        close: closeRest,
        failed,
      })
      return openControl({
        dataDir,
        log,
        handOver: takeover,
        handedOver(finished) {
          void finished
            .catch((cause: unknown) => log.error('The end of this server failed', {}, cause))
            .finally(() => {
              options.closed(0)
              finishing.resolve()
            })
        },
      })
    },
  }
}
