import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import type { GpuSetupPlan } from '../../core/models/gpu-setup.ts'
import { behindProxy } from '../../core/models/hub/proxy.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { npmRegistry, packageIndex } from '../../core/models/package-index/find-package-file.ts'
import { readCxxLibrary } from '../../gpu/devices/cxx-library.ts'
import { readLinuxSystem } from '../../gpu/devices/driver-advice.ts'
import { findGraphicsCards, type GraphicsCards } from '../../gpu/devices/graphics-cards.ts'
import { discover } from '../../gpu/devices/nvidia-smi.ts'
import type { BackendReport } from '../../gpu/engines/gguf/backend.ts'
import { backendsFolder, searchBackends } from '../../gpu/engines/gguf/backend-search.ts'
import { type BackendChoice, chooseGpuBackend } from '../../gpu/engines/gguf/choose-backend.ts'
import { type GpuBackend, type GpuPackage, gpuPackages } from '../../gpu/engines/gguf/gpu-packages.ts'
import { probeWrapper } from '../../gpu/sandbox/probe-wrapper.ts'
import { openPullDisplay } from '../models/pull.ts'
import { exitCodes, refused, usageFailure } from '../terminal/exit-codes.ts'
import type { CommonOptions } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { downloadPackages, hostsOf, installPackages, missingPackages } from './install-backend.ts'
import { installedBackends, latestVersion } from './installed-backends.ts'
import { hasBackend, neededFor } from './offer-gpu.ts'
import type { SetupGpuOptions } from './setup-gpu.ts'

/** Runs the command: chooses the backend by the GPUs of this machine unless it is named. */
export async function setUpGpu(
  options: SetupGpuOptions & { dataDir: string },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const environment = hostEnvironment()
  const wanted = options.backend ?? 'auto'
  if (options.from !== undefined && options.downloadOnly !== undefined)
    throw usageFailure('--from and --download-only exclude each other.')
  const cards = await findGraphicsCards({ environment })
  const system = { ...readLinuxSystem(), cxxLibrary: readCxxLibrary() }
  const choice = chooseGpuBackend(cards, system, process.arch)
  const backend = wanted === 'auto' ? choice.backend : wanted
  if (options.dryRun) return showPlan(options, { cards, choice, backend }, terminal)
  if (backend === null && options.downloadOnly !== undefined)
    throw usageFailure('Name the backend of the other machine with --backend: cuda, cuda-12 or vulkan.')
  if (backend === null)
    throw refused(
      'conflict',
      `${choice.why}. ${choice.advice ?? 'To install a backend nevertheless, name it with --backend.'}`,
    )
  const notes = [
    ...(wanted === 'auto' ? [`${choice.why}.`] : []),
    ...(choice.backend === null ? [`${choice.why}.`] : []),
    ...(choice.advice === null ? [] : [choice.advice]),
  ]
  report(await installGpuBackend({ ...options, backend, notes }, terminal, signal), terminal)
}

/** Prints what the setup would download, and changes nothing. */
function showPlan(
  options: SetupGpuOptions & { dataDir: string },
  { cards, choice, backend }: { cards: GraphicsCards; choice: BackendChoice; backend: GpuBackend | null },
  terminal: Terminal,
): void {
  const environment = hostEnvironment()
  const folder = backendsFolder(options.dataDir, environment)
  const missing = backend === null ? [] : missingPackages(folder, options.packages ?? gpuPackages[backend])
  const source = hostsOf(missing, sourcesOf(options, environment))
  const plan: GpuSetupPlan = {
    needed: neededFor(cards, choice) !== null,
    installed: hasBackend(options.dataDir, environment),
    backend,
    why: choice.why,
    advice: choice.advice,
    packages: missing.map(({ name, version, bytes, license }) => ({ name, version, bytes, license })),
    bytes: missing.reduce((all, { bytes }) => all + bytes, 0),
    source,
    folder,
  }
  if (!options.json) {
    for (const note of [`${choice.why}.`, choice.advice ?? []].flat()) terminal.remark(note)
    if (missing.length > 0) showPackages(missing, source, folder, terminal)
  }
  const rest = missing.length === 0 ? 'Nothing is missing of it.' : 'Nothing was changed.'
  terminal.result(options.json, plan, backend === null ? 'There is nothing to install.' : rest)
}

const sourcesOf = (options: SetupGpuOptions, environment: ReturnType<typeof hostEnvironment>) => ({
  npmRegistry: options.npmRegistry?.replace(/\/+$/, '') ?? npmRegistry(environment),
  packageIndex: options.indexUrl?.replace(/\/+$/, '') ?? packageIndex(environment),
  hub: hubSettings(environment),
})

/** Installs the backends again that are outdated or incomplete; those that are complete stay. With `check` it only says which. */
export async function updateGpu(
  options: CommonOptions & { dataDir: string; check?: boolean; yes?: boolean },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const installed = await installedBackends(options.dataDir, hostEnvironment())
  if (installed.length === 0)
    throw usageFailure('No backend for GPUs is installed. Install one with: infer engine setup gpu')
  const old = installed.filter(({ state }) => state !== 'complete')
  const folder = backendsFolder(options.dataDir, hostEnvironment())
  const backends = installed.map(one => ({
    ...one,
    latest: latestVersion(one.name),
    download_bytes: missingPackages(folder, gpuPackages[one.name]).reduce((all, { bytes }) => all + bytes, 0),
  }))
  if (old.length === 0)
    return terminal.result(options.json, { backends }, 'The backends for GPUs are complete and up to date.')
  if (options.check)
    return terminal.result(
      options.json,
      { backends },
      `${backends.flatMap(changeOf).join(' ')} Install it with: infer engine update gpu`,
    )
  for (const { name } of old)
    report(await installGpuBackend({ ...options, backend: name, notes: [] }, terminal, signal), terminal)
}

/** What an update changes of a backend, as a sentence; none for a complete one. */
function changeOf({
  name,
  version,
  state,
  latest,
  download_bytes: bytes,
}: Awaited<ReturnType<typeof installedBackends>>[number] & { latest: string; download_bytes: number }): string[] {
  if (state === 'complete') return []
  return state === 'incomplete'
    ? [`The backend ${name} ${version} is not complete; a download of ${sizeText(bytes)} completes it.`]
    : [`Change of the backend ${name}: ${version} → ${latest}, a download of ${sizeText(bytes)}.`]
}

function report(outcome: Awaited<ReturnType<typeof installGpuBackend>>, terminal: Terminal): void {
  if (outcome === 'declined') terminal.remark('Nothing was changed.')
  if (outcome === 'fails') terminal.setExitCode(exitCodes.failed)
}

/** Shows what is downloaded, asks, installs it, and computes with it. `fails`: installed, but it does not compute. */
export async function installGpuBackend(
  options: SetupGpuOptions & { dataDir: string; backend: GpuBackend; notes: readonly string[] },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<'declined' | 'done' | 'fails'> {
  const { dataDir, backend, notes, json, from, downloadOnly } = options
  const environment = hostEnvironment()
  const folder = backendsFolder(dataDir, environment)
  const packages = options.packages ?? gpuPackages[backend]
  const missing = downloadOnly === undefined ? missingPackages(folder, packages) : packages
  const sources = sourcesOf(options, environment)
  const isQuiet = json && !options.events
  const tools = { signal, onEvent: isQuiet ? () => {} : openPullDisplay(terminal, options.events === true) }
  if (!json) for (const note of notes) terminal.remark(note)
  if (missing.length > 0) {
    const source = from === undefined ? hostsOf(missing, sources) : from
    if (!json) showPackages(missing, source, downloadOnly ?? folder, terminal)
    if (!options.yes && (json || !terminal.interactive))
      throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
    const question = from === undefined ? 'Download and accept the licenses?' : 'Install and accept the licenses?'
    if (!options.yes && !(await confirm(question, true, terminal, signal))) return 'declined'
    try {
      await behindProxy(environment, () =>
        downloadOnly !== undefined
          ? downloadPackages(missing, downloadOnly, sources, tools)
          : installPackages(
              packages,
              { folder, files: from ?? join(folder, 'downloads'), given: from !== undefined, sources },
              { ...tools, onUnpack: () => terminal.waiting('Unpacking') },
            ),
      )
    } catch (thrown) {
      if (signal.aborted) terminal.remark('Stopped. The downloaded part is kept: run the same command to continue.')
      throw thrown
    } finally {
      terminal.progress('')
    }
  }
  if (downloadOnly !== undefined) {
    terminal.result(
      json,
      { backend, folder: downloadOnly, files: packages.map(({ file, bytes }) => ({ file, bytes })) },
      `The files are in ${printable(downloadOnly)}. On the other machine: infer engine setup gpu --backend ${backend} --from ${printable(downloadOnly)}`,
    )
    return 'done'
  }
  terminal.waiting('Computing with the backend; the first time the driver may compile code for the GPU, for minutes')
  const trial = await proveBackend(backend, folder)
  terminal.progress('')
  const works = trial?.state === 'works'
  const { detail = 'not tried', advice = null } = trial ?? {}
  const result = works
    ? `The backend ${backend} ${detail}.`
    : `The backend ${backend} is installed, but does not work yet: ${detail}.${advice === null ? '' : ` ${advice}`}`
  terminal.result(json, { backend, folder, works, detail, advice }, result)
  if (works && !json) terminal.remark('A running server moves its models to the GPUs by itself.')
  return works ? 'done' : 'fails'
}

function showPackages(packages: readonly GpuPackage[], source: string, target: string, terminal: Terminal): void {
  terminal.table(
    ['PACKAGE', 'VERSION', 'SIZE', 'LICENSE'],
    packages.map(({ name, version, bytes, license }) => [name, version, sizeText(bytes), license]),
  )
  const bytes = packages.reduce((all, one) => all + one.bytes, 0)
  terminal.print(`${sizeText(bytes)} from ${printable(source)} into ${printable(target)}`)
}

/** Tries an installed backend as a server would, which then knows the result. */
async function proveBackend(backend: GpuBackend, folder: string): Promise<BackendReport | undefined> {
  const environment = hostEnvironment()
  const [{ devices }, { wrapper }] = [await discover({ environment }), await probeWrapper(environment)]
  const search = { folder, devices, environment, wrapper, names: [backend], retest: true }
  for await (const report of searchBackends(search)) return report
  return undefined
}
