import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hostEnvironment } from '../../../core/config.ts'
import { behindProxy } from '../../../core/models/hub/proxy.ts'
import { hubSettings } from '../../../core/models/hub/settings.ts'
import { optionalText } from '../../../core/optional-file.ts'
import { findGraphicsCards } from '../../../gpu/devices/graphics-cards.ts'
import { probeSandbox } from '../../../gpu/sandbox/probe.ts'
import { openPullDisplay } from '../../models/pull.ts'
import { refused, usageFailure } from '../../terminal/exit-codes.ts'
import type { CommonOptions } from '../../terminal/options.ts'
import { sizeText } from '../../terminal/quantities-text.ts'
import { confirm } from '../../terminal/standard-input.ts'
import { printable } from '../../terminal/styled-line.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { printEvent } from '../setup-events.ts'
import { chooseBuild, type ReleaseMachine, textOf } from './choose-build.ts'
import { describeRelease, findRelease, hostOf, type Release, type ReleaseSource, readRelease } from './find-release.ts'
import { type Chosen, downloadFiles, filesOf, installRelease } from './install-release.ts'
import { installedReleases, releasesFolder } from './installed-releases.ts'
import type { ReleaseBackend, ReleaseKind } from './release-kinds.ts'
import { servedVersions } from './served-versions.ts'

export interface SetUpReleaseOptions extends CommonOptions {
  release?: string
  backend?: ReleaseBackend | 'auto'
  /** A folder of --download-only, or the address of a mirror. */
  from?: string
  downloadOnly?: string
  beside?: boolean
  config?: string
  yes?: boolean
  /** Do not ask, and print the progress as JSON, for the server. */
  events?: boolean
}

type Located = SetUpReleaseOptions & { dataDir: string }

const isAddress = (text: string): boolean => /^https?:\/\//i.test(text)

const sourceOf = ({ from }: SetUpReleaseOptions): ReleaseSource => ({
  mirror: from !== undefined && isAddress(from) ? from.replace(/\/+$/, '') : undefined,
  hub: hubSettings(hostEnvironment()),
})

const folderOf = ({ from }: SetUpReleaseOptions): string | undefined =>
  from === undefined || isAddress(from) ? undefined : from

/** Runs `infer engine setup llama-server` or `sd-server`. */
export async function setUpRelease(
  kind: ReleaseKind,
  options: Located,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const given = folderOf(options)
  if (given !== undefined && options.downloadOnly !== undefined)
    throw usageFailure('--from with a folder and --download-only exclude each other.')
  if (given !== undefined && options.release !== undefined)
    throw usageFailure('--release is for downloads: a folder of --download-only has one release.')
  const release = await find(kind, options, terminal, signal)
  await install(kind, release, options, terminal, signal)
}

/** Runs `infer engine update llama-server` or `sd-server`. */
export async function updateRelease(
  kind: ReleaseKind,
  options: Located & { check?: boolean },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const current = installedReleases(options.dataDir, kind).find(one => one.isCurrent)
  if (!current) throw usageFailure(`${kind.name} is not installed. Install it with: infer engine setup ${kind.name}`)
  const release = await find(kind, options, terminal, signal)
  const isNewer = release.version !== current.version
  if (options.check || !isNewer)
    return terminal.result(
      options.json,
      { engine: kind.name, version: current.version, latest: release.version, is_newer: isNewer },
      isNewer
        ? `${kind.title} ${release.version} is published, and ${current.version} is in use. Replace it with: infer engine update ${kind.name}`
        : `${kind.title} ${current.version} is the latest release.`,
    )
  await install(kind, release, { ...options, backend: current.backend }, terminal, signal)
}

async function find(kind: ReleaseKind, options: Located, terminal: Terminal, signal: AbortSignal): Promise<Release> {
  const given = folderOf(options)
  if (given !== undefined) return readRelease(kind, given)
  const source = sourceOf(options)
  const step = `Asking ${hostOf(source)} for releases of ${kind.title}`
  if (options.events) printEvent('step', step, terminal)
  else if (!options.json) terminal.waiting(step)
  try {
    return await behindProxy(hostEnvironment(), () => findRelease(kind, options.release, source, signal))
  } finally {
    if (!options.json) terminal.progress('')
  }
}

/** What decides which build runs on this machine. */
async function releaseMachine(root = '/'): Promise<ReleaseMachine> {
  return {
    architecture: process.arch,
    cards: await findGraphicsCards({ environment: hostEnvironment(), root }),
    rocm: /^\d+(\.\d+)*/.exec(optionalText(join(root, 'opt/rocm/.info/version')) ?? '')?.[0] ?? null,
  }
}

async function install(
  kind: ReleaseKind,
  release: Release,
  options: Located,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { dataDir, json, downloadOnly, backend = 'auto' } = options
  const files = release.files.map(({ name }) => name)
  const chosen = chooseBuild(kind, { version: release.version, files }, await releaseMachine(), backend)
  if (chosen.build === null) throw refused('conflict', `${chosen.why}. ${chosen.advice}`)
  const target = downloadOnly ?? join(releasesFolder(dataDir, kind), release.version)
  if (!json) show(kind, release, chosen, { ...options, target }, terminal)
  const isAccepted = options.yes || options.events
  if (!isAccepted && (json || !terminal.interactive))
    throw usageFailure('This command asks for confirmation, which needs a terminal. Add --yes to confirm.')
  const question = downloadOnly === undefined ? 'Install it?' : 'Download it?'
  if (!isAccepted && !(await confirm(question, true, terminal, signal))) return terminal.remark('Nothing was changed.')
  const isQuiet = json && !options.events
  const onEvent = isQuiet ? () => {} : openPullDisplay(terminal, options.events === true)
  const tools = { kind, source: sourceOf(options), signal, onEvent }
  try {
    await behindProxy(hostEnvironment(), () =>
      downloadOnly === undefined
        ? place(release, chosen, options, tools, terminal)
        : fill(release, chosen, { downloadOnly, json }, tools, terminal),
    )
  } catch (thrown) {
    if (signal.aborted) terminal.remark('Stopped. The downloaded part is kept: run the same command to continue.')
    throw thrown
  } finally {
    terminal.progress('')
  }
}

function show(
  { title, license, repository }: ReleaseKind,
  release: Release,
  chosen: Chosen,
  options: Located & { target: string },
  terminal: Terminal,
): void {
  terminal.remark(`${chosen.why}.`)
  if (chosen.advice !== null) terminal.remark(chosen.advice)
  const wanted = filesOf(release, chosen)
  terminal.table(
    ['FILE', 'RELEASE', 'SIZE', 'LICENSE'],
    wanted.map(({ name, bytes }, at) => [
      name,
      release.version,
      sizeText(bytes),
      at === 0 ? license : 'NVIDIA Software License Agreement (docs.nvidia.com/cuda/eula)',
    ]),
  )
  const bytes = wanted.reduce((sum, one) => sum + one.bytes, 0)
  const from = folderOf(options) ?? `${hostOf(sourceOf(options))}/${repository}`
  const pointed = release.pointedBy === null ? '' : `, which is ${title} ${release.pointedBy}`
  terminal.print(`${sizeText(bytes)} from ${printable(from)}${pointed}, into ${printable(options.target)}`)
}

type Tools = Pick<Parameters<typeof downloadFiles>[2], 'kind' | 'source' | 'signal' | 'onEvent'>

async function fill(
  release: Release,
  chosen: Chosen,
  { downloadOnly, json }: { downloadOnly: string; json: boolean | undefined },
  tools: Tools,
  terminal: Terminal,
): Promise<void> {
  const { kind } = tools
  const files = filesOf(release, chosen)
  mkdirSync(downloadOnly, { recursive: true })
  await downloadFiles(files, downloadOnly, tools)
  const { name, text } = describeRelease(kind, release)
  writeFileSync(join(downloadOnly, name), text)
  terminal.result(
    json,
    { engine: kind.name, version: release.version, folder: downloadOnly, files: files.map(one => one.name) },
    `The files are in ${printable(downloadOnly)}. On the other machine: infer engine setup ${kind.name} --backend ${chosen.build.backend} --from ${printable(downloadOnly)}`,
  )
}

async function place(
  release: Release,
  chosen: Chosen,
  options: Located,
  tools: Tools,
  terminal: Terminal,
): Promise<void> {
  const { dataDir, json, beside = false } = options
  const { kind } = tools
  const { version } = release
  const { trial, path, isCurrent, deleted, running } = await installRelease({
    ...tools,
    release,
    chosen,
    dataDir,
    config: options.config ?? join(dataDir, 'infer.yaml'),
    served: () => servedVersions(dataDir, [kind.name], tools.signal),
    given: folderOf(options),
    beside,
    host: hostEnvironment(),
    sandbox: await probeSandbox(hostEnvironment()),
    onStep: text => (options.events ? printEvent('step', text, terminal) : terminal.waiting(text)),
  })
  terminal.progress('')
  const built = textOf(chosen.build)
  if (json)
    return terminal.json({
      engine: kind.name,
      version,
      backend: chosen.build.backend,
      path,
      is_current: isCurrent,
      says: trial.says,
      trial: trial.text,
      deleted,
      running,
    })
  const use = isCurrent
    ? `Models with \`engine: ${kind.name}\` use it from their next load on.`
    : `Models use it that have \`engine_version: ${version}\`.`
  terminal.print(`${kind.title} ${version} for ${built} is installed. ${trial.text}`)
  terminal.print(use)
  if (deleted.length > 0) terminal.print(`Deleted what nothing uses any more: ${deleted.join(', ')}.`)
  if (running.length > 0)
    terminal.print(
      `Engines still run from ${running.join(', ')}. The next setup or update deletes what they no longer use.`,
    )
}
