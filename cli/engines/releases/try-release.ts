import { realpathSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { assetPath } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import { Model } from '../../../core/models/model.ts'
import { engineEnvironment } from '../../../gpu/launcher/environment.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import type { SandboxSupport } from '../../../gpu/sandbox/level.ts'
import { type ProgramRun, runProgram } from '../../../gpu/sandbox/program.ts'
import type { DeviceFiles } from '../../../gpu/sandbox/system.ts'
import { printable } from '../../terminal/styled-line.ts'
import { openTrialConfinement, withSignal } from '../trial-confinement.ts'
import { askTrialServer, lastLine } from '../trial-server.ts'
import { textOf } from './choose-build.ts'
import type { Build, ReleaseBackend, ReleaseKind } from './release-kinds.ts'

/** How long a trial may take, milliseconds. */
export interface TrialTimes {
  /** Until the program has told its version. */
  start: number
  /** Until the model is loaded; the driver of a GPU may compile code for minutes. */
  load: number
  answer: number
}
const trialTimes: TrialTimes = { start: 30_000, load: 300_000, answer: 120_000 }

interface TrialOptions {
  kind: ReleaseKind
  build: Build
  /** Folder of the programs. */
  bin: string
  /** A folder for the files that the engine writes. */
  home: string
  /** The data directory, which its sandbox hides. */
  dataDir: string
  /** How engines are confined on this machine. */
  sandbox: SandboxSupport
  host: Readonly<Record<string, string | undefined>>
  signal: AbortSignal
  times?: TrialTimes
}

/** Makes the command that starts the program with these arguments. */
type CommandOf = (
  args: readonly string[],
  read?: readonly string[],
) => ReturnType<Awaited<ReturnType<typeof openTrialConfinement>>>

/** What a trial has shown. */
export interface Trial {
  /** What the program says of its version; null if it says nothing. */
  says: string | null
  /** A sentence about what was tried, and about what was not. */
  text: string
}

/**
 * Tries a program of a release before anything uses it: it starts, a build for GPUs finds one, and llama-server answers a
 * request with a tiny model, started as the server would start it, in the sandbox of engines where there is one. Rejects with Failure `worker_error`, which says what
 * went wrong and what to do, and with the reason of the signal.
 */
export async function tryRelease(options: TrialOptions): Promise<Trial> {
  const { kind, build, bin, home, host, signal, times = trialTimes } = options
  const program = join(realpathSync(bin), kind.name)
  const env = engineEnvironment({ host, home, bootId: 'trial', launchId: 'trial', visibleDevices: {}, more: {} })
  const confine = await openTrialConfinement({ ...options, env, devices: devicesOf[build.backend] })
  const commandOf: CommandOf = (args, read) => confine([program, ...args], read)
  const foreign = foreignFault(await readStart(program))
  if (foreign !== null) throw unusable(kind, foreign)
  const run = async (argument: string, isGood: (words: string) => boolean = () => false): Promise<string> => {
    signal.throwIfAborted()
    const { file, args, wrapper } = await commandOf([argument])
    const ended = withSignal(await runProgram(file, args, env, times.start), wrapper)
    const words = `${ended.stdout}\n${ended.stderr}`
    const fault = ended.exitCode !== undefined && isGood(words) ? null : startFault(ended)
    if (fault !== null) throw unusable(kind, fault)
    return words
  }
  if (kind.name === 'sd-server') {
    // Some versions print their help as an error.
    const hasOption = (words: string) => words.includes('--listen-port')
    if (!hasOption(await run('--help', hasOption)))
      throw unusable(kind, "its help has no option '--listen-port', so it is not the server that infer drives")
    const told = await run('--version', () => true)
    return {
      says: printable(/\bversion\s+(\S.*)/.exec(told)?.[1] ?? '') || null,
      text: 'The program starts. No image was made, because that needs a model: try one with infer model test.',
    }
  }
  const says = /^version:\s*(.*\S)/m.exec(await run('--version'))?.[1] ?? null
  if (build.backend !== 'cpu' && !/^\s+\w*\d+:/m.test(await run('--list-devices')))
    throw unusable(
      kind,
      `it is built for ${textOf(build)} and finds no GPU with that. Choose another build with --backend, or repair the driver: infer doctor`,
    )
  const text = await answerOf(commandOf, env, options)
  return { says: says === null ? null : printable(says), text: `The program answers: ${JSON.stringify(text)}.` }
}

/** Groups of device files of which a build may need some. */
const devicesOf: Readonly<Record<ReleaseBackend, readonly DeviceFiles[]>> = {
  cpu: [],
  cuda: ['nvidia'],
  rocm: ['kfd', 'dri'],
  vulkan: ['dri', 'nvidia'],
}

const unusable = (kind: ReleaseKind, why: string): Failure =>
  new Failure('worker_error', `The program ${kind.name} of ${kind.title} does not work on this machine: ${why}.`)

/** Kinds of processors in the header of a program (ELF), as Node names them. */
const machines: Readonly<Record<number, string>> = { 62: 'x64', 183: 'arm64' }

/** Why a program cannot run here by its first 20 bytes, as the end of a sentence; null if it can, and for scripts. Pure. */
export function foreignFault(start: Buffer, architecture: string = process.arch): string | null {
  if (start.length < 20 || start.toString('latin1', 0, 4) !== '\x7fELF') return null
  // Asked now, because the system would run it as a script.
  return machines[start.readUInt16LE(18)] === architecture
    ? null
    : `it was built for another kind of processor than this one (${architecture})`
}

async function readStart(path: string): Promise<Buffer> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(20), 0, 20, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

/** Why a program did not start, as the end of a sentence; null if it did. Pure. */
export function startFault({ exitCode, errorCode, signal, timedOut, stdout, stderr }: ProgramRun): string | null {
  const words = `${stderr}\n${stdout}`
  if (timedOut) return 'it has not answered in time'
  if (signal === 'SIGILL') return 'it was built for a processor with instructions that this one lacks (SIGILL)'
  if (signal !== undefined) return `it was ended by ${signal}`
  if (errorCode !== undefined) return `it cannot be started (${errorCode})`
  const [, library] = /error while loading shared libraries: ([^:\s]+)/.exec(words) ?? []
  const version = /version [`']((?:GLIBC|GLIBCXX|CXXABI)_[\d.]+)' not found/.exec(words)?.[1]
  if (version !== undefined)
    return `it was built for a newer Linux (${version}). Choose an older release with --release, or build it here`
  if (library !== undefined) return `the library ${library} is missing here. ${libraryAdvice(library)}`
  if (exitCode !== 0) return `it ended with exit code ${exitCode}: ${lastLine(words)}`
  return null
}

const packages: readonly [RegExp, string][] = [
  [/^libvulkan\.so/, 'libvulkan1'],
  [/^libgomp\.so/, 'libgomp1'],
  [/^lib(ssl|crypto)\.so/, 'libssl3'],
  [/^libcurl\.so/, 'libcurl4'],
]

function libraryAdvice(library: string): string {
  const name = packages.find(([pattern]) => pattern.test(library))?.[1]
  if (name !== undefined) return `Install it (Debian, Ubuntu: sudo apt install ${name}) and run this command again`
  return 'Install it, or choose another build with --backend'
}

/** Starts llama-server with the tiny chat model as the server would, and resolves with its answer to one request. */
async function answerOf(
  commandOf: CommandOf,
  env: Record<string, string>,
  { kind, build, home, signal, times = trialTimes }: TrialOptions,
): Promise<string> {
  const source = assetPath('models/tiny-chat.gguf')
  const model = Model.parse({ id: 'trial', engine: kind.name, source, context_length: 256, concurrency: 1 })
  const preset = presetOf(model)
  const gpus = build.backend === 'cpu' ? 0 : 1
  const facts = { slots: 1, threads: 1, gpus, memoryShare: 1, freeShare: 1, bytes: 0, backend: null }
  const [, ...given] = preset.command(model, facts)
  const { file, args, wrapper } = await commandOf(given, [source])
  const key = 'trial'
  return askTrialServer({
    command: [file, ...args],
    env: { ...env, ...preset.env(model, key) },
    home,
    healthPath: preset.healthPath(model)!,
    loads: { ms: times.load, text: 'loaded a tiny model' },
    answerMs: times.answer,
    ask: (address, either) => complete(address, key, either),
    faultOf: run => startFault(withSignal(run, wrapper)),
    unusable: why => unusable(kind, why),
    signal,
  })
}

const prompt = 'Hello'

async function complete(address: string, key: string, signal: AbortSignal): Promise<string> {
  const answer = await fetch(`${address}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ prompt, max_tokens: 8, temperature: 0 }),
    signal,
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${answer.status} ${text.slice(0, 200)}`)
  const { choices } = JSON.parse(text) as { choices?: { text?: unknown }[] }
  const written = choices?.[0]?.text
  if (typeof written !== 'string' || written === '') throw new Error(`it has no text: ${text.slice(0, 200)}`)
  return written
}
