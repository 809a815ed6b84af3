import { existsSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { packaged, version } from '../../core/assets.ts'
import { remoteServer } from '../../core/config.ts'
import { openCpu } from '../../core/cpu/cpu.ts'
import { openLog } from '../../core/log.ts'
import { openFfmpeg } from '../../core/media/ffmpeg.ts'
import { type Config, readConfig } from '../../core/models/config.ts'
import { offeredModels } from '../../core/models/defaults.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { poolsOf } from '../../core/models/pools.ts'
import { checkDatabase } from '../../core/store/sqlite/admin.ts'
import { limitBytesOf, memoryFileSystem } from '../../gpu/caches/memory-folder.ts'
import { cpuDevice } from '../../gpu/devices/cpu.ts'
import type { BackendReport } from '../../gpu/engines/gguf/backend.ts'
import { backendsFolder, searchBackends } from '../../gpu/engines/gguf/backend-search.ts'
import { findCards } from '../../gpu/engines/gguf/find-cards.ts'
import { parkingBudgetOf } from '../../gpu/fleet-options.ts'
import { ownCards } from '../../gpu/placement/own-cards.ts'
import { presetOf, traitsOf } from '../../gpu/presets/presets.ts'
import { missingSandboxPaths, wantedLevel } from '../../gpu/presets/sandbox-requirements.ts'
import { probeSandbox } from '../../gpu/sandbox/probe.ts'
import { probeWrapper } from '../../gpu/sandbox/probe-wrapper.ts'
import { neededHere } from '../engines/offer-gpu.ts'
import { findEngines } from '../models/engine-programs.ts'
import { failureOfThrown, refused } from '../terminal/exit-codes.ts'
import { checkDeviceUse, deviceUse } from './device-use.ts'
import { broken, type Finding, fine } from './finding.ts'
import {
  checkAddress,
  checkConfiguration,
  checkDirectory,
  checkDisk,
  checkMasterKey,
  checkModelFiles,
} from './installation.ts'
import { checkKeptEngines, keptEngines } from './kept-engines.ts'
import {
  checkBackends,
  checkCards,
  checkFfmpegFound,
  checkGatewayProcesses,
  checkImageSupport,
  checkLibc,
  checkMemory,
  checkOpenFiles,
  checkProgram,
  checkSandbox,
  checkSandboxPaths,
  checkSavedConversations,
  checkWrapper,
  openFilesLimit,
  type SandboxedModel,
} from './machine.ts'
import {
  addressFacts,
  checkRemoteServer,
  directoryFacts,
  freeBytes,
  glibcVersion,
  kernelText,
  masterKeyFacts,
  remoteServerFacts,
} from './measure.ts'
import { checkEngines, checkModelEngines, modelEngines } from './model-engines.ts'
import { checkOtherInfers, otherInfers } from './other-infers.ts'
import { checkParking } from './parking.ts'

export interface DoctorOptions {
  dataDir: string
  configPath: string | undefined
  environment: Record<string, string | undefined>
  /** Tests the backends that work again too, instead of using stored results. */
  retest?: boolean
}

/** Runs every check in order, lazily. A check that throws becomes a finding. */
export async function* runChecks({
  dataDir,
  configPath,
  environment,
  retest,
}: DoctorOptions): AsyncGenerator<Finding, void, void> {
  const { config, facts } = readConfiguration(configPath ?? join(dataDir, 'infer.yaml'), configPath !== undefined)
  const finding = findMachineCards({ dataDir, environment, retest })
  const enginePaths = { dataDir, path: environment.PATH ?? '' }
  type Checked = Finding | undefined
  const checks: [name: string, check: () => Checked | Promise<Checked>][] = [
    ['program', () => checkProgram({ version, packaged, node: process.versions.node, path: process.execPath })],
    ['system library', () => checkLibc(glibcVersion())],
    ['configuration', () => checkConfiguration(facts)],
    ['model files', () => checkModelFiles(modelFiles(config), config.models.length === 0)],
    ['engines', () => checkEngines(findEngines(enginePaths))],
    ['model engines', async () => checkModelEngines(await modelEngines(config.models, enginePaths))],
    ['data directory', () => checkDirectory(directoryFacts(dataDir))],
    ['master key', () => checkMasterKey(masterKeyFacts(dataDir, environment))],
    [
      'disk',
      () => checkDisk({ path: dataDir, freeBytes: freeBytes(dataDir), minFreeBytes: config.limits.min_free_disk }),
    ],
    ['database', () => checkDatabaseReport(dataDir)],
    ['gateway', () => checkGatewayProcesses({ processes: config.gateway_processes, cores: availableParallelism() })],
    ['address', async () => checkAddress(await addressFacts(config.listen, dataDir))],
    ['kept engines', async () => checkKeptEngines(await keptEngines(dataDir))],
    ['engine wrapper', async () => checkWrapper(await probeWrapper(environment))],
    ['engine sandbox', async () => checkSandbox(await probeSandbox(environment), sandboxedModels(config))],
    ['sandbox paths', async () => checkSandboxPaths(await missingPaths(config))],
    ['open files', () => checkOpenFiles(openFilesLimit(kernelText('/proc/self/limits') ?? ''))],
    ['memory', checkThisMemory],
    ['conversations', () => checkSavedConversations(savedFacts(config))],
    ['images', async () => checkImageSupport(await imageFault())],
    ['ffmpeg', async () => checkFfmpegFound(await openFfmpeg({ ...config.media, environment }).found())],
    ['GPUs', async () => checkCards(ownCards((await finding).found, { environment, devices: config.devices }))],
    [
      'parking',
      async () =>
        checkParking({
          cards: ownCards((await finding).found, { environment, devices: config.devices }).devices,
          engines: findEngines(enginePaths),
          models: config.models,
          budget: parkingBudgetOf(config.limits, cpuDevice().totalBytes),
        }),
    ],
    [
      'GPU use',
      async () => {
        const { devices, lost = [] } = (await finding).found
        const use = await deviceUse(dataDir, [...devices, cpuDevice()])
        return checkDeviceUse(
          use,
          lost.map(({ id }) => id),
        )
      },
    ],
  ]
  const server = remoteServer()
  if (server) checks.unshift(['INFER_URL', async () => checkRemoteServer(await remoteServerFacts(server.url))])
  for (const [name, check] of checks) {
    try {
      const found = await check()
      if (found) yield found
    } catch (thrown) {
      yield checkFailed(name, thrown)
    }
  }
  yield* checkOtherInfers(await otherInfers(config, environment))
  try {
    yield* examineBackends({ dataDir, environment, retest }, await finding)
  } catch (thrown) {
    yield checkFailed('backends', thrown)
  }
}

/** Checks one pool of the configuration instead of this machine. Rejects with Failure `not_found` for one that is not in it. */
export async function* runPoolChecks(
  pool: string,
  { dataDir, configPath, environment }: Omit<DoctorOptions, 'retest'>,
): AsyncGenerator<Finding, void, void> {
  const { pools, models } = readConfig(configPath ?? join(dataDir, 'infer.yaml'), configPath !== undefined, traitsOf)
  const settings = Object.hasOwn(pools, pool) ? pools[pool] : undefined
  if (!settings) throw refused('not_found', `There is no pool '${pool}'. See: infer pool list`)
  const used = models.filter(model => model.enabled && poolsOf(model).some(use => use.pool === pool))
  const { checkPool } = await import('../../gpu/pool-checks/check-pool.ts')
  try {
    yield* checkPool({ pool, settings, models: used, dataDir, environment, log: openLog('error') })
  } catch (thrown) {
    yield checkFailed('pool', thrown)
  }
}

const checkFailed = (name: string, thrown: unknown): Finding =>
  broken(name, failureOfThrown(thrown).message, 'The check itself failed. Read the message.')

const savedFacts = ({ caches }: Config) => ({
  ...memoryFileSystem(),
  limitBytes: limitBytesOf(caches, cpuDevice().totalBytes),
})

/** Finds the cards, also by the Vulkan backend, in processes of their own. */
async function findMachineCards({ dataDir, environment, retest }: Omit<DoctorOptions, 'configPath'>) {
  const { wrapper } = await probeWrapper(environment)
  const folder = backendsFolder(dataDir, environment)
  return { found: await findCards({ folder, environment, wrapper, retest }), wrapper }
}

/** Tests the backends of the built-in engine, each in its own process. The first test can take minutes. */
async function* examineBackends(
  { dataDir, environment, retest }: Omit<DoctorOptions, 'configPath'>,
  { found: { devices }, wrapper }: Awaited<ReturnType<typeof findMachineCards>>,
): AsyncGenerator<Finding, void, void> {
  const folder = backendsFolder(dataDir, environment)
  const reports: BackendReport[] = []
  const search = { folder, devices, environment, wrapper, retest: retest || ('failures' as const) }
  for await (const report of searchBackends(search)) reports.push(report)
  yield* checkBackends(reports, await neededHere(environment))
}

/** Reads the configuration. An invalid one becomes a finding, and the other checks use the defaults. */
function readConfiguration(
  path: string,
  required: boolean,
): { config: Config; facts: Parameters<typeof checkConfiguration>[0] } {
  const exists = existsSync(path)
  try {
    const config = readConfig(path, required, traitsOf)
    return { config, facts: { path, exists, fault: undefined, models: config.models.length } }
  } catch (thrown) {
    return { config: readConfig('', false), facts: { path, exists, fault: failureOfThrown(thrown).message, models: 0 } }
  }
}

/** Returns the models whose source is a path; hub names and addresses of other servers are not checked. */
function modelFiles(config: Config): { id: string; source: string; exists: boolean }[] {
  return offeredModels(config).flatMap(({ id, enabled, engine, source }) =>
    enabled && source !== undefined && (engineFacts(engine).isBuiltIn || /^\.{0,2}\//.test(source))
      ? [{ id, source, exists: existsSync(source) }]
      : [],
  )
}

/** Returns the models whose engines this machine starts. */
function sandboxedModels(config: Config): SandboxedModel[] {
  return offeredModels(config).flatMap(model => {
    if (!model.enabled) return []
    const preset = presetOf(model)
    return preset.sandbox ? [{ id: model.id, ...wantedLevel(model, preset) }] : []
  })
}

async function missingPaths({ models }: Config): Promise<string[]> {
  const enabled = models.filter(model => model.enabled)
  return (await Array.fromAsync(enabled, missingSandboxPaths)).flat()
}

async function checkDatabaseReport(dataDir: string): Promise<Finding> {
  if (!existsSync(join(dataDir, 'infer.db'))) return fine('database', 'is created at the first start')
  const { findings } = await checkDatabase(dataDir, { quick: true })
  return findings.length === 0
    ? fine('database', 'structure and ledger are intact')
    : broken('database', findings.join('; '), `Restore a backup: infer restore <file> --data-dir ${dataDir}`)
}

/** A PNG of one white pixel. */
const pixel = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAACklEQVQI12P4DwABAQEAG7buVgAAAABJRU5ErkJggg==',
  'base64',
)

/** Decodes an image as the server does: in a thread, with the extracted native library. Returns the error, if any. */
async function imageFault(): Promise<string | undefined> {
  const cpu = openCpu()
  try {
    await cpu.image(pixel, { formats: ['png'], maxBytes: 1024, maxPixels: 1, maxSide: 1 })
    return undefined
  } catch (thrown) {
    return failureOfThrown(thrown).message
  } finally {
    await cpu.close()
  }
}

function checkThisMemory(): Finding {
  const { totalBytes, cores } = cpuDevice()
  const score = kernelText('/proc/self/oom_score_adj')
  return checkMemory({
    totalBytes: totalmem(),
    limitBytes: totalBytes,
    cores: cores ?? 1,
    oomScore: score === undefined ? undefined : Number(score),
  })
}
