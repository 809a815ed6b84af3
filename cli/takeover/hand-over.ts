import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { HandedSpend, SpendChange } from '../../core/admission/handed-spend.ts'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import type { UsedSlots } from '../../core/models/used-slots.ts'
import type { SendCommand, Store } from '../../core/store/store.ts'
import type { ForwardTarget } from '../../server/fronts/forward.ts'
import type { Server } from '../../server/server.ts'
import { isBoundToUnit } from '../service/notify.ts'
import { awaitLoads } from './await-loads.ts'
import { protocolVersion, type ServeFlags, type TakeoverRequest } from './protocol.ts'
import { openRemoteCommands } from './remote-commands.ts'
import { RestartNeeded } from './restart-needed.ts'
import { type Successor, startSuccessor } from './successor.ts'

export interface HandOverOptions {
  dataDir: string
  /** How this server was started. */
  own: { program: readonly string[]; flags: ServeFlags }
  server: Pick<Server, 'hold' | 'handOver' | 'finish' | 'sockets' | 'listen'>
  store: Pick<Store, 'recovery'>
  /** Returns what is held now and not written yet; calls `tell` from then on with what changes. */
  spend: { handOver(tell: (change: SpendChange) => void): HandedSpend }
  /** The slots of engines that requests use now, by engine id. */
  usedSlots: () => UsedSlots
  log: Log
  /** Resolves when the server before this one has ended, of whose last requests the next one learns through this one. */
  before: Promise<void> | undefined
  /** How long running requests may take to finish, milliseconds. */
  drainMs: number
  /** The models without a ready engine for which synchronous callers wait. */
  unserved: () => readonly string[]
  /** Ends the work in the background that the new server continues. Requests are still answered. */
  quiesce: () => Promise<unknown>
  /**
   * Interrupts what still runs of it, writes what waits for the store, and hands the store over: `send` gets its commands from then
   * on. Requests wait meanwhile.
   */
  leave: (send: SendCommand) => Promise<unknown>
  /** Closes what is left, without the store, when the last request has ended. */
  close: () => Promise<unknown>
  /**
   * Refuses the requests that wait, when no server has the data directory any more, interrupts the others, and closes what is
   * left. Then it calls `last`, and this server ends.
   */
  failed: (last: () => Promise<unknown>) => Promise<unknown>
}

/** Milliseconds between two messages about the slots that requests here use. */
const slotsMs = 50

/**
 * Lets another process take the place of this server. Until the new one is prepared nothing has changed here. Then
 * requests wait until it has opened the data directory; those that already run end here.
 */
export function openHandOver(options: HandOverOptions) {
  const { dataDir, own, server, store, spend, log, drainMs } = options
  let begun = false
  let stopped = false
  let successor: Successor | undefined
  /** Set once this server can no longer go on: resolves when another one serves, or none does. */
  let handing: Promise<void> | undefined
  let isSettled = false
  const commands = openRemoteCommands({ dataDir, log })

  function refuse(request: TakeoverRequest): void {
    if (process.pid === 1)
      throw new Failure(
        'conflict',
        'This server is the first process of its container, which ends with it. Replace the container instead.',
      )
    if (request.protocol !== protocolVersion)
      throw new RestartNeeded(
        'The running version cannot hand over to this one. Stop the running server, and start this one.',
      )
    const { listen } = request.flags
    if (listen !== undefined && listen !== own.flags.listen && listen !== server.listen)
      throw new Failure(
        'invalid_value',
        `The running server listens on ${server.listen}, and a take-over keeps its address. Leave out --listen, or stop the running server and start this one.`,
      )
    if (server.sockets().length === 0)
      throw new RestartNeeded(
        'This server has no socket now that it could pass on. Try again in a minute, or stop the running server and start this one.',
      )
    if (isBoundToUnit(hostEnvironment(), process.pid))
      throw new RestartNeeded(
        'The unit of this service ends with its first process. Run infer service install again and systemctl restart infer once.',
      )
    if (begun) throw new Failure('conflict', 'Another take-over of this server has begun.')
    if (stopped) throw stopping()
  }

  const start = (program: readonly string[], flags: ServeFlags): Successor =>
    startSuccessor({
      program,
      dataDir,
      flags: { ...own.flags, ...flags },
      sockets: server.sockets(),
      begin: { protocol: protocolVersion, bootId: store.recovery.bootId },
    })

  const loaded = (report: (text: string) => void) =>
    awaitLoads({ unserved: options.unserved, isStopped: () => stopped, report })

  /** Tells it from now on which slots requests here use: it gives them to no others. */
  function tellSlots(to: Successor): void {
    let told: UsedSlots | undefined
    const timer = setInterval(() => {
      const slots = options.usedSlots()
      if (isDeepStrictEqual(slots, told)) return
      told = slots
      to.send({ kind: 'slots', slots })
    }, slotsMs)
    timer.unref()
    void to.gone.catch(() => clearInterval(timer))
  }

  /** Gives the data directory to the successor, or to this version again if that fails. Resolves with why it was. */
  async function give(first: Successor, request: TakeoverRequest): Promise<unknown> {
    const since = performance.now()
    await server.hold()
    const heldMs = performance.now() - since
    await options.leave(commands.send)
    const storeMs = performance.now() - since - heldMs
    const openIn = (to: Successor) => {
      to.send({
        kind: 'handedOver',
        spend: spend.handOver(change => to.send({ kind: 'spend', change })),
        slots: options.usedSlots(),
      })
      return to.serving()
    }
    let serving = first
    let forwarding: ForwardTarget
    let failure: unknown
    try {
      forwarding = await openIn(first)
    } catch (thrown) {
      failure = thrown
      log.error('The new server could not open the data directory, so the old version is started again', {}, thrown)
      serving = start(request.fallback ?? own.program, {})
      successor = serving
      await serving.prepared()
      forwarding = await openIn(serving)
    }
    server.handOver(forwarding, drainMs)
    commands.use(serving)
    tellSlots(serving)
    log.info('Handed over', {
      pid: serving.pid,
      gateway_ms: Math.round(heldMs),
      store_ms: Math.round(storeMs),
      waited_ms: Math.round(performance.now() - since),
    })
    void serving.gone.catch(() => commands.useOwn())
    return failure
  }

  return {
    /**
     * Resolves with the process id of the new server when it serves, with `settled`, which resolves when nothing depends
     * on this process but its own requests, and with `finished`, which resolves when it has nothing left to do. Rejects
     * with the reason as a Failure if the new one cannot take over. Then this one goes on, unless `failed` was called: it
     * has given up its data directory, and must end.
     */
    async begin(request: TakeoverRequest, report: (text: string) => void) {
      refuse(request)
      begun = true
      let first: Successor | undefined
      try {
        mkdirSync(join(dataDir, 'run'), { recursive: true, mode: 0o700 })
        log.info('Another server is started to take over', { program: request.program.join(' ') })
        report('Starting the new server.')
        first = start(request.program, request.flags)
        successor = first
        await first.prepared()
        await Promise.race([loaded(report), first.gone])
        if (stopped) throw stopping()
      } catch (thrown) {
        begun = false
        first?.kill()
        log.warn('The other server cannot take over, so this one goes on', {}, thrown)
        throw stopped ? stopping() : thrown
      }
      report('The new server is prepared. Handing over.')
      let failure: unknown
      try {
        await options.quiesce()
        // Other requests may have come meanwhile.
        await loaded(report)
        if (stopped) throw stopping()
        const given = give(first, request)
        handing = given.then(
          () => {},
          () => {},
        )
        failure = await given
      } catch (thrown) {
        successor?.kill()
        // Then whoever stops this server ends it.
        if (stopped && !handing) throw thrown
        log.error('No other server could take over, and this one has given up its work, so it ends', {}, thrown)
        commands.useOwn()
        await options.failed(commands.close)
        throw new Failure(
          'conflict',
          `${Failure.from(thrown).message} The running server could not go on and has ended. Read its log, and start it again.`,
          { cause: thrown },
        )
      }
      const serving = successor
      // Its end is logged when it ends.
      const settled = serving
        .settled()
        .catch(() => {})
        .then(() => (isSettled = true))
      const finished = server
        .finish(drainMs, options.before)
        .then(() => settled)
        .then(options.close)
        .then(commands.close)
      return { pid: serving.pid!, failure, settled, finished }
    },
    /**
     * The server is to stop: ends a take-over that can still be given up, and waits for any other, whose new server is
     * told to stop too. Resolves with whether this one still has its data directory.
     */
    async stop(): Promise<boolean> {
      stopped = true
      if (!handing) {
        if (begun) successor?.kill()
        return true
      }
      await handing
      // Later it is a server of its own.
      if (!isSettled) successor?.stop()
      return false
    },
  }
}
export type HandOver = ReturnType<typeof openHandOver>

const stopping = () =>
  new Failure('shutting_down', 'The running server is stopping. Start the new one when it has ended.')
