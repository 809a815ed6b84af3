import type { Spend } from '../../core/admission/spend.ts'
import type { Batches } from '../../core/batches/batches.ts'
import { Failure } from '../../core/failure.ts'
import type { Jobs } from '../../core/jobs/jobs.ts'
import type { Log } from '../../core/log.ts'
import type { Fleet } from '../../core/models/fleet.ts'
import type { CommandName, Commands } from '../../core/store/sqlite/commands.ts'
import { sendable } from '../../core/store/sqlite/sent-failure.ts'
import type { NewJob, Store } from '../../core/store/store.ts'
import type { Inheritance, Server } from '../../server/server.ts'
import { type Begin, type FromSuccessor, protocolVersion, type ToSuccessor } from './protocol.ts'

/** The file descriptor of the first listening socket in the new process, for the server itself; all of them follow. */
const listenerDescriptor = 3

/** Reads what the old server has passed with the start. Throws Failure `conflict` if it speaks another protocol. */
export function readBegin(text: string): Begin {
  const begin = JSON.parse(text) as Begin
  if (begin.protocol === protocolVersion) return begin
  throw new Failure(
    'conflict',
    'This version cannot take over from the running one. Stop the running server, and start this one.',
  )
}

/** The jobs that a command stores. */
function jobsIn(name: string, given: readonly unknown[]): readonly NewJob[] {
  if (name === ('addJob' satisfies CommandName)) return [given[0] as NewJob]
  return name === ('addJobs' satisfies CommandName) ? (given[0] as NewJob[]) : []
}

/** Those that were not stored, because their key had created others: `value` is the answer to the command. */
const repeatedOf = (jobs: readonly NewJob[], value: unknown): NewJob[] => {
  const holders = [value].flat()
  return jobs.filter((_, at) => holders[at] !== null)
}

/** The server whose place this process takes: it has started this process and holds the data directory until it hands over. */
export function openPredecessor({ sockets, bootId }: Begin) {
  const handedOver = Promise.withResolvers<Extract<ToSuccessor, { kind: 'handedOver' }>>()
  const gone = Promise.withResolvers<void>()
  const early: ToSuccessor[] = []
  let receive = (message: ToSuccessor): void => void early.push(message)
  const send = (message: FromSuccessor): void => void process.send?.(message, undefined, {}, () => {})

  /** Milliseconds of each phase since the data directory is free. */
  const phases: Record<string, number> = {}
  let phaseBegan = 0

  /** A phase of the start has ended, while requests wait: its time is logged at the level debug. */
  function reached(phase: string): void {
    const now = performance.now()
    phases[`${phase}_ms`] = Math.round(10 * (now - phaseBegan)) / 10
    phaseBegan = now
  }

  process.on('message', (message: ToSuccessor) => {
    if (message.kind === 'handedOver') {
      phaseBegan = performance.now()
      handedOver.resolve(message)
    } else receive(message)
  })
  process.once('disconnect', () => {
    handedOver.reject(new Failure('conflict', 'The running server ended before it had handed over.'))
    gone.resolve()
  })
  // Prevents an unhandled rejection; whoever awaits it gets the error.
  handedOver.promise.catch(() => {})

  const inherited: Omit<Inheritance, 'dataDir'> = {
    listener: listenerDescriptor,
    sockets: Array.from({ length: sockets }, (_, at) => listenerDescriptor + 1 + at),
  }
  return {
    inherited,
    bootId,
    /** What the fleet needs to know of its engines. Resolves when the data directory is free. */
    engines: async () => ({ otherBootId: bootId, usedElsewhere: (await handedOver.promise).slots }),
    /** Resolves when the data directory is free. */
    handedOver: handedOver.promise,
    /** Resolves when the old server has ended. */
    gone: gone.promise,
    /**
     * Loads what is loaded later otherwise and says that this process can take over at once. Resolves when the data
     * directory is free.
     */
    prepared: async (): Promise<undefined> => {
      await import('../../server/http/connection/listen.ts')
      send({ kind: 'prepared' })
      await handedOver.promise
    },
    reached,
    /** Says that the old server may end. */
    settled: (): void => send({ kind: 'settled' }),
    /** Says why this process does not take over. */
    failed: (message: string): void => send({ kind: 'failed', message }),
    /**
     * Says that this process serves, and takes the requests of the old one. Does from now on what the calls that still run
     * there need: runs their commands and holds what they may cost.
     */
    async serving(
      owners: {
        store: Pick<Store, 'perform'>
        spend: Pick<Spend, 'takeOver'>
        jobs: Pick<Jobs, 'storedElsewhere' | 'cancelledElsewhere'>
        batches: Pick<Batches, 'resume'>
        fleet: Pick<Fleet, 'usedElsewhere'>
      },
      server: Pick<Server, 'forwarding' | 'closeForwarding'>,
      log: Log,
    ) {
      reached('routes')
      const { store, spend, jobs, batches, fleet } = owners
      const handed = await handedOver.promise
      const held = spend.takeOver(handed.spend)
      /** Begins what a command of the old server has stored here, and stops what it has cancelled. */
      function follow(name: string, given: readonly unknown[], added: readonly NewJob[]): Promise<unknown> {
        if (name === ('addBatch' satisfies CommandName)) return batches.resume()
        if (name !== ('cancelJob' satisfies CommandName)) return jobs.storedElsewhere(added)
        const [organizationId, id, at] = given as Parameters<Commands['cancelJob']>
        return jobs.cancelledElsewhere(organizationId, id, at)
      }
      /** Runs a command of the old server, and does here what follows from it. */
      async function perform(name: string, given: readonly unknown[]): Promise<unknown> {
        const added = jobsIn(name, given)
        const idsOf = (all: readonly NewJob[]) => all.map(({ id }) => id)
        const refused = held.storing(idsOf(added))
        try {
          const value = await store.perform(name, given)
          const repeated = new Set(repeatedOf(added, value))
          refused(idsOf([...repeated]))
          const stored = added.filter(job => !repeated.has(job))
          follow(name, given, stored).catch((thrown: unknown) =>
            log.warn('What the server before has stored or cancelled takes effect with the next start', {}, thrown),
          )
          return value
        } catch (thrown) {
          refused(idsOf(added))
          throw thrown
        }
      }
      receive = message => {
        if (message.kind === 'spend') held.change(message.change)
        else if (message.kind === 'slots') fleet.usedElsewhere(message.slots)
        else if (message.kind === 'command')
          perform(message.name, message.given).then(
            value => send({ kind: 'answer', id: message.id, value, failure: undefined }),
            (thrown: unknown) => send({ kind: 'answer', id: message.id, value: undefined, failure: sendable(thrown) }),
          )
      }
      for (const message of early.splice(0)) receive(message)
      void gone.promise.then(() => {
        held.ended()
        fleet.usedElsewhere(new Map())
        server.closeForwarding()
      })
      send({ kind: 'serving', forwarding: server.forwarding! })
      log.debug('Took over', phases)
    },
  }
}
export type Predecessor = ReturnType<typeof openPredecessor>
