import { randomUUID } from 'node:crypto'
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readAsset, selfCommand } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import type { SlurmPool } from '../../../core/models/pools.ts'
import { optionalText } from '../../../core/optional-file.ts'
import { engineEnvironment, enginePath } from '../environment.ts'
import { openLaunchFolders, orUnwritable } from '../launch-folders.ts'
import { newLaunchKey } from '../launch-key.ts'
import { openRecords } from '../launch-records.ts'
import { type Launcher, type LaunchOptions, secretsIn } from '../launcher.ts'
import { singleStarts } from '../single-starts.ts'
import { openCommands, refusalIn } from './commands.ts'
import { behindFetch, fetchEnvironment } from './fetch-step.ts'
import { endedWith } from './job-states.ts'
import type { SlurmRecord } from './listed-launches.ts'
import { cardsIn, nodeArguments } from './node-lines.ts'
import { followFile } from './output-file.ts'
import { jobComment } from './queue-lines.ts'
import { refusalOf } from './refusal.ts'
import { commandOnNode, excludedIn, isWarned, jobIdIn, submitArguments, submitScript } from './submission.ts'
import { TrackedLaunches } from './tracked-launches.ts'

export interface SlurmLauncherOptions {
  /** The name of the pool. */
  pool: string
  settings: SlurmPool
  dataDir: string
  /** Names this server among those that use the cluster: no white space. */
  serverId: string
  /** The server's environment: where the commands of Slurm are found, and what engines inherit of it. */
  host: Readonly<Record<string, string | undefined>>
  log: Log
}

const closeMs = 5_000
/** Milliseconds after the grace of a stop in which the wrapper must have ended its engine; then Slurm is asked to. */
const stopLateMs = 5_000

/** What engines inherit of the server's environment: its cards are not those of the node. */
const inherited = /^(PATH|TZ|HOME|HF_HOME|SSL_CERT_\w+|LD_LIBRARY_PATH|CUDA_(HOME|PATH)|ROCM_(HOME|PATH))$/

/**
 * Starts engines as jobs of a Slurm cluster. A wrapper on the node (wrapper.py) is the only way to an engine: it lets in whoever
 * has the key of the launch, and ends the engine when no server has asked for it during the grace of the pool.
 */
export async function openSlurmLauncher(options: SlurmLauncherOptions): Promise<Launcher> {
  const { pool, settings, host, log } = options
  // Pools may be partitions of one cluster, and what a pool does not know of its own jobs it cancels.
  const serverId = `${options.serverId}.${pool}`
  const data = realpathSync(options.dataDir)
  const folder = join(data, 'slurm', pool)
  for (const name of ['launches', 'output']) mkdirSync(join(folder, name), { recursive: true, mode: 0o700 })
  const run = openCommands(host)
  const records = openRecords<SlurmRecord>(join(folder, 'launches'), log)
  const folders = openLaunchFolders(data)
  const marker = ownMarker(join(folder, 'marker'))
  const environment = Object.fromEntries(Object.entries(host).filter(([name]) => inherited.test(name)))
  const outputOf = (launchId: string) => join(folder, 'output', `${launchId}.log`)
  const starts = singleStarts(start)
  /** Timers of stops that a wrapper has accepted. */
  const late = new Map<string, NodeJS.Timeout>()
  const launches = new TrackedLaunches(
    {
      pool,
      serverId,
      beatMs: Math.min(60_000, settings.orphan_grace / 4),
      excluded: excludedIn(settings),
      run,
      records,
      outputOf,
      log,
      ended({ launchId, engineId }) {
        clearTimeout(late.get(launchId))
        late.delete(launchId)
        folders.release({ engineId })
      },
    },
    records.all(),
  )
  let hasLeft = false

  async function start(given: LaunchOptions, signal: AbortSignal): Promise<void> {
    const { launchId, modelId } = given
    const before = launches.held.get(launchId)
    // Nobody knows whether an earlier attempt was accepted: the queue does.
    if (before && !before.record.end) await launches.list(signal)
    if (before && (before.record.jobId !== null || before.record.end)) return
    const path = enginePath(data, environment.PATH ?? '', given.environments)
    const { file, args } = selfCommand([])
    const argv = commandOnNode(given.argv, [file, ...args], settings.executable)
    const refusal = refusalOf({ ...given, argv }, settings, path)
    if (refusal !== undefined) throw new Failure('worker_error', refusal)
    const shared = orUnwritable(modelId, () => folders.make(given))
    const needs = given.needs ?? { cards: 1, cpus: 1, memoryBytes: 0, maxMs: null, nodes: 1 }
    const record = before?.record ?? (await newRecord(given, isWarned(settings, needs)))
    // Written first: without its key a job is of no use.
    await records.write(record)
    const launch = before ?? launches.hold(record)
    const cache = settings.model_cache
    const infer = [...commandOnNode([file, ...args], [file, ...args], settings.executable)]
    const onNode = cache === undefined ? argv : await behindFetch(argv, { infer, source: given.source, cache })
    const fetches = onNode === argv ? {} : fetchEnvironment(host)
    const more = { ...fetches, ...given.env, PATH: path }
    const script = submitScript(wrapperTexts(), {
      certificate: record.certificate,
      key: record.key,
      argv: onNode,
      env: engineEnvironment({
        host: environment,
        home: shared.home,
        bootId: serverId,
        launchId,
        visibleDevices: {},
        more,
      }),
      channel: given.channel,
      cards: needs.cards,
      comment: jobComment(serverId, launchId),
      orphanSeconds: settings.orphan_grace / 1_000,
      dataDirectory: data,
      marker: marker.path,
      nonce: marker.nonce,
      log: outputOf(launchId),
      home: shared.home,
      outputs: shared.outputs,
      nodes: needs.nodes,
      others: given.otherNodes ?? [],
    })
    const submit = (avoid: readonly string[]) =>
      run('sbatch', submitArguments(settings, needs, { serverId, launchId, avoid }), signal, script)
    const avoid = launches.unreachableNodes()
    launch.avoids = avoid.length > 0
    let submitted = await submit(avoid)
    // Without those nodes the job may fit nowhere. They may be there again before it runs.
    if (launch.avoids && submitted.refused) {
      launch.avoids = false
      submitted = await submit([])
    }
    const jobId = submitted.ok ? jobIdIn(submitted.stdout) : undefined
    if (jobId !== undefined) return launches.accepted(launch, jobId)
    const { fault } = submitted
    if (!submitted.refused)
      throw new Error(`It is not known whether Slurm has accepted the job of '${modelId}': ${fault}.`)
    launches.held.delete(launchId)
    await records.remove(launchId)
    folders.release(given)
    throw new Failure('worker_error', `Slurm has refused the job of '${modelId}': ${refusalIn(fault)}.`)
  }

  async function cancel(jobId: string, signal: AbortSignal): Promise<void> {
    const { ok, fault } = await run('scancel', [jobId], signal)
    if (!ok && !/invalid job id|already complet/i.test(fault))
      throw new Error(`scancel does not end the job ${jobId}: ${fault}.`)
  }

  async function stop(launchId: string, graceMs: number, signal: AbortSignal): Promise<void> {
    await starts.settled(launchId)
    const launch = launches.held.get(launchId)
    if (!launch || launch.record.end) return
    const accepted = (await launches.control(launchId)?.stop(graceMs, signal)) ?? false
    if (!accepted) {
      if (launch.record.jobId === null) await launches.list(signal)
      // Should its job appear later, it is cancelled, because it belongs to no engine.
      if (launch.record.jobId === null) return launches.end(launch, { status: null, reason: 'It was not started.' })
      await cancel(launch.record.jobId, signal)
    }
    launch.isEnding = true
    launches.touch(launchId)
    clearTimeout(late.get(launchId))
    if (!accepted) return
    const timer = setTimeout(() => {
      log.warn('The wrapper of an engine does not end it; its job is cancelled', { pool, launch: launchId })
      void cancel(launch.record.jobId!, AbortSignal.timeout(closeMs)).catch(() => {})
    }, graceMs + stopLateMs)
    timer.unref()
    late.set(launchId, timer)
  }

  return {
    // Changes are announced: the launcher looks by itself while it has engines.
    pollMs: 60_000,
    start: starts.start,
    list: signal => launches.list(signal),
    stop,
    async *logs(launchId, from, signal) {
      const launch = launches.held.get(launchId)
      if (launch) yield* followFile(outputOf(launchId), from, () => launch.record.end !== null, signal)
    },
    async capacity(signal) {
      const { ok, stdout, fault } = await run('sinfo', nodeArguments(settings.partition), signal)
      if (!ok) throw new Error(`sinfo does not tell the nodes of the pool '${pool}': ${fault}.`)
      const { devices, unusable } = cardsIn(stdout, settings.gres, settings.card_memory)
      const without = unusable.length > 0 ? ` These nodes take no jobs: ${unusable.join(', ')}.` : ''
      const reason = devices.length > 0 ? null : `The pool '${pool}' has no card '${settings.gres}' now.${without}`
      return { devices, reason, broken: false }
    },
    watch(listener) {
      launches.listeners.add(listener)
      return () => void launches.listeners.delete(listener)
    },
    hints(launchId, status) {
      const reason = launches.held.get(launchId)?.record.end?.reason
      return reason && reason !== endedWith(status) ? { hint: reason, loadingHint: reason } : {}
    },
    watchReach: listener => void launches.reachListeners.add(listener),
    check: launches.check,
    note: (launchId, note) => records.note(launches.held.get(launchId)?.record, note),
    async leave() {
      hasLeft = true
      launches.close()
      await records.written()
    },
    async close() {
      launches.close()
      for (const timer of late.values()) clearTimeout(timer)
      const live = [...launches.held.values()].flatMap(({ record }) =>
        record.end || record.jobId === null ? [] : [record.jobId],
      )
      if (!hasLeft && live.length > 0) {
        const { ok, fault } = await run('scancel', live, AbortSignal.timeout(closeMs))
        if (!ok) log.warn('Slurm jobs may be left: they end by themselves', { pool, jobs: live.join(' '), fault })
      }
      await records.written()
    },
  }
}

const wrapperTexts = () => ({ wrapper: textOf('slurm-wrapper.py'), nodes: textOf('slurm-nodes.py') })
const textOf = (asset: string): string => Buffer.from(readAsset(asset)).toString('utf8')

const newRecord = async (
  { launchId, engineId, modelId, env }: LaunchOptions,
  warned: boolean,
): Promise<SlurmRecord> => ({
  version: 1,
  ...(await newLaunchKey()),
  launchId,
  engineId,
  modelId,
  jobId: null,
  secrets: secretsIn(env),
  isWarned: warned,
  note: null,
  end: null,
})

/** The file by which a node notices that it shares the data directory. Jobs that wait since earlier servers know its text. */
function ownMarker(path: string): { path: string; nonce: string } {
  const known = optionalText(path)
  const nonce = known || randomUUID()
  if (!known) writeFileSync(path, nonce, { mode: 0o600 })
  return { path, nonce }
}
