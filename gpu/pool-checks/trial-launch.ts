import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Launch, Launcher, LaunchNeeds } from '../launcher/launcher.ts'
import { fetchHealth } from '../requests/health.ts'
import { unconfined } from '../sandbox/level.ts'

/** How a trial has ended; `reason` is a sentence. */
export type Trial =
  | { state: 'answered'; node: string | null; body: string }
  /** It was not started, or has not answered, in time. `hasStarted`: it ran, and could not be reached. */
  | { state: 'waiting'; reason: string; hasStarted: boolean }
  | { state: 'failed'; reason: string }

/** Milliseconds between two looks, for each call, and until a trial that was stopped is gone. */
const lookMs = 500
const callMs = 30_000
const goneMs = 15_000

/**
 * Starts a small server by a launcher, calls `/health` as of an engine, and ends it. `argv`: its program, which listens on
 * `{socket}`; `limitMs`: how long it may take to answer. Never throws.
 */
export async function tryLaunch(
  launcher: Launcher,
  { argv, needs, limitMs }: { argv: readonly string[]; needs: LaunchNeeds; limitMs: number },
): Promise<Trial> {
  const engineId = `wkr_doctor${randomUUID().slice(0, 8)}`
  const launchId = `${engineId}-1`
  const signal = () => AbortSignal.timeout(callMs)
  const find = async (): Promise<Launch | undefined> =>
    (await launcher.list(signal())).find(launch => launch.launchId === launchId)
  const options = { launchId, engineId, modelId: 'doctor', argv, channel: 'socket', needs } as const
  try {
    await launcher.start({ ...options, env: {}, visibleDevices: {}, sandbox: unconfined }, signal())
    try {
      return await answerOf(find, limitMs)
    } finally {
      await launcher.stop(launchId, 0, signal())
      const until = performance.now() + goneMs
      while (performance.now() < until && ((await find())?.state ?? 'gone') !== 'gone') await pause(lookMs)
    }
  } catch (thrown) {
    const { message } = thrown as Error
    const engineText = thrown instanceof Failure ? thrown.engineText : undefined
    return { state: 'failed', reason: engineText ? `${message} ${engineText}` : message }
  }
}

async function answerOf(find: () => Promise<Launch | undefined>, limitMs: number): Promise<Trial> {
  const until = performance.now() + limitMs
  let reason = 'It is not listed yet.'
  let hasStarted = false
  while (performance.now() < until) {
    const launch = await find()
    if (launch?.state === 'gone')
      return { state: 'failed', reason: launch.reason ?? `It has ended (${launch.status ?? 'nobody knows how'}).` }
    if (launch) reason = launch.reason ?? 'It runs, and does not answer yet.'
    hasStarted = !!launch?.endpoint
    if (launch?.endpoint) {
      const { health, body } = await fetchHealth(launch.endpoint, '/health', [], 3_000)
      if (health === 'ready') return { state: 'answered', node: launch.node, body }
      reason = `It runs on '${launch.node ?? 'its node'}', and cannot be reached from here.`
    }
    await pause(lookMs)
  }
  return { state: 'waiting', reason, hasStarted }
}
