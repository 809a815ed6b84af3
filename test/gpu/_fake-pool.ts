import { onTestFinished } from 'vitest'
import { PoolSettings } from '../../core/models/pools.ts'
import { type Device, noReadings } from '../../gpu/devices/device.ts'
import type { Launch, Launcher, LaunchOptions } from '../../gpu/launcher/launcher.ts'
import { openLocalLauncher } from '../../gpu/launcher/local.ts'
import type { OpenPoolLauncher } from '../../gpu/pool-launches.ts'
import { noWrapper } from '../../gpu/sandbox/wrapper.ts'
import { keptLog, noDevices, noSandbox, temporary } from './launcher/_launch.ts'

const GiB = 2 ** 30

/** The settings of a cluster whose cards have 80 GiB. */
export const cluster = (of: object = {}): PoolSettings =>
  PoolSettings.parse({ kind: 'slurm', card_memory: '80GiB', ...of })

/** Cards of 80 GiB, so many on each machine. */
const cardsOn = (nodes: Readonly<Record<string, number>>): Device[] =>
  Object.entries(nodes).flatMap(([node, count]) =>
    Array.from({ length: count }, (_, at) => ({
      ...noReadings,
      id: `${node}/gpu${at}`,
      kind: 'gpu' as const,
      name: 'gpu',
      totalBytes: 80 * GiB,
      usedBytes: null,
      cudaId: null,
      uuid: null,
      cores: null,
    })),
  )

/**
 * A pool of several machines whose engines are real processes of this one: what it has, whether it answers, and how long a
 * launch waits for a machine are what the test says.
 */
export async function fakePool(nodes: Readonly<Record<string, number>> = { n1: 2, n2: 2 }) {
  const real: Launcher = await openLocalLauncher({
    dataDir: temporary(),
    bootId: `pool-${process.pid}`,
    host: process.env,
    wrapper: noWrapper,
    support: noSandbox,
    log: keptLog(),
    devices: noDevices,
  })
  onTestFinished(() => real.close())
  const started: LaunchOptions[] = []
  const listeners = new Set<() => void>()
  /**
   * Why launches wait for a machine; null: they run at once. Why nothing is known of the pool; null: it answers. Whether machines
   * that cannot be reached end nothing.
   */
  const state = { nodes, pending: null as string | null, fault: null as string | null, isDead: false }
  /** When the machines end launches, epoch milliseconds. */
  const ends = new Map<string, number>()
  const waiting = new Map<string, LaunchOptions>()
  /** Launches of machines that are gone. */
  const lost = new Set<string>()
  /** Launches at whose addresses nobody seems to listen. */
  const unreachable = new Set<string>()

  const answer = <T>(result: T): T => {
    if (state.fault !== null) throw new Error(state.fault)
    return result
  }
  const pendingLaunch = ({ launchId, engineId, modelId }: LaunchOptions): Launch => ({
    launchId,
    engineId,
    modelId,
    state: 'pending',
    reason: state.pending,
    node: null,
    pid: null,
    endpoint: null,
    status: null,
    endsAt: null,
    note: null,
    secrets: [],
  })
  const launcher: Launcher = {
    ...real,
    pollMs: 200,
    async start(options, signal) {
      answer(started.push(options))
      if (state.pending === null) return await real.start(options, signal)
      waiting.set(options.launchId, options)
    },
    list: async signal =>
      answer([
        ...(await real.list(signal))
          .filter(one => !lost.has(one.launchId))
          .map(one => ({
            ...one,
            node: 'n2',
            endsAt: ends.get(one.launchId) ?? null,
            isUnreachable: unreachable.has(one.launchId),
          })),
        ...Array.from(waiting.values(), pendingLaunch),
      ]),
    async stop(launchId, graceMs, signal) {
      waiting.delete(launchId)
      if (state.isDead && unreachable.has(launchId)) return
      await real.stop(launchId, graceMs, signal)
    },
    capacity: async () => answer({ devices: cardsOn(state.nodes), reason: null, broken: false }),
    watch(listener) {
      listeners.add(listener)
      const unwatch = real.watch(listener)
      return () => {
        listeners.delete(listener)
        unwatch()
      }
    },
    leave: async () => {},
    close: async () => {},
  }
  return {
    state,
    started,
    open: (async () => launcher) satisfies OpenPoolLauncher,
    /** A machine is free: what has waited runs. */
    async run(): Promise<void> {
      state.pending = null
      for (const [launchId, options] of waiting) {
        waiting.delete(launchId)
        await real.start(options, AbortSignal.timeout(10_000))
      }
      for (const listener of listeners) listener()
    },
    /** The machine ends the launch after so many milliseconds. */
    endIn(launchId: string, ms: number): void {
      ends.set(launchId, Date.now() + ms)
      setTimeout(() => void real.stop(launchId, 0, AbortSignal.timeout(10_000)), ms)
      for (const listener of listeners) listener()
    },
    /** The machine of the launch is gone: nobody knows how the engine has ended. */
    async lose(launchId: string): Promise<void> {
      lost.add(launchId)
      await real.stop(launchId, 0, AbortSignal.timeout(10_000))
    },
    /** The launch cannot be reached any more, or can be again. */
    setReached(launchId: string, isReached: boolean): void {
      if (isReached) unreachable.delete(launchId)
      else unreachable.add(launchId)
      for (const listener of listeners) listener()
    },
    /** Its launches, as it lists them. */
    list: () => launcher.list(AbortSignal.timeout(10_000)),
    changed: (): void => listeners.forEach(listener => listener()),
  }
}
