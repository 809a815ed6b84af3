import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { DoctorReport, Inspection, InspectionFinding } from '../../core/inspection.ts'
import { type Config, configText } from '../../core/models/config.ts'
import { type ConfigKey, configKeys, configValues, variableValues } from '../../core/models/config-keys.ts'
import type { Reload } from '../../core/models/reload.ts'
import { readYaml } from '../../core/read-yaml.ts'
import { backupFiles } from '../../core/store/sqlite/backup-files.ts'
import { spawnSelf } from './own-command.ts'

interface InspectionOptions {
  dataDir: string
  configPath: string
  /** The configuration of the start, and the file that it was read from. They differ by options of the command line. */
  config: Config
  file: Config
  reload: Pick<Reload, 'status'>
  /** The first test of the GPU backends takes minutes; its result is stored. */
  timeoutMs?: number
}

/** Output of the checks that is kept. */
const maxOutput = 1 << 20

/** Opens what the server says about its installation. */
export function openInspection({
  dataDir,
  configPath,
  config,
  file,
  reload,
  timeoutMs = 180_000,
}: InspectionOptions): Inspection {
  const closing = new AbortController()
  const signal = () => AbortSignal.any([closing.signal, AbortSignal.timeout(timeoutMs)])
  let running: Promise<DoctorReport> | undefined
  let keys: readonly ConfigKey[] | undefined
  const readFile = openFileKeys(configPath)

  return {
    doctor: () =>
      (running ??= runDoctor({ dataDir, configPath }, signal()).finally(() => {
        running = undefined
      })),
    configuration() {
      const { exists, isInFile } = readFile()
      const { pending } = reload.status()
      const fromCommandLine = config.listen === file.listen ? [] : ['listen']
      return {
        path: resolve(configPath),
        exists,
        values: configValues(config, (keys ??= configKeys()), { isInFile, fromCommandLine, pending }),
        variables: variableValues(hostEnvironment()),
      }
    },
    backups: () => backupFiles(dataDir),
    close: () => closing.abort(),
  }
}

/** Returns a function that says which keys the file sets. It parses the file again only if it has changed. */
function openFileKeys(path: string) {
  let last: { version: string; isInFile: (keys: readonly string[]) => boolean } | undefined
  return () => {
    const stat = statSync(path, { throwIfNoEntry: false })
    if (!stat) return { exists: false, isInFile: () => false }
    const version = `${stat.mtimeMs} ${stat.size} ${stat.ino}`
    if (last?.version !== version) last = { version, isInFile: keysIn(path) }
    return { exists: true, isInFile: last.isInFile }
  }
}

/** Which keys a file sets; none if it has become unreadable since the server started. */
function keysIn(path: string): (keys: readonly string[]) => boolean {
  try {
    const { document } = readYaml(configText(path), path)
    return keys => document.hasIn(keys)
  } catch {
    return () => false
  }
}

/**
 * Runs `infer doctor` as a process of its own: its checks read the whole database and start programs, which would block
 * the server.
 */
async function runDoctor(
  { dataDir, configPath }: { dataDir: string; configPath: string },
  signal: AbortSignal,
): Promise<DoctorReport> {
  const child = spawnSelf(['doctor'], dataDir, configPath, { signal, killSignal: 'SIGKILL' })
  let [output, errors] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (output.length < maxOutput) output += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4_096)
  })
  await new Promise<void>((done, reject) => {
    child.once('error', reject).once('close', () => done())
  }).catch((cause: unknown) => {
    throw signal.aborted ? tooLong(cause) : notRun(cause)
  })
  try {
    const { findings } = JSON.parse(output) as { findings: InspectionFinding[] }
    return { at: Date.now(), findings }
  } catch {
    throw notRun(errors)
  }
}

const tooLong = (cause: unknown) =>
  new Failure('timeout', 'The checks did not end in time. Run them on the machine: infer doctor', { cause })
const notRun = (cause: unknown) =>
  new Failure('worker_error', 'The checks could not be run. Run them on the machine: infer doctor', { cause })
